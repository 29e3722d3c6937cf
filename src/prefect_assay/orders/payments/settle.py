"""Pay the invoice of one order, once: read, judge, record, send, and read the outcome.

Every step may run again after any crash, on any machine, because the invoice and the record are read first. A
credential is sent at most once per call. It is never sent again for a payment that may have been made, unless the
rail's nonce makes a second settlement impossible. This module reads no header and signs nothing.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Final

from prefect_assay.errors import (
    PaymentError,
    PaymentFailed,
    PaymentOutcomeUnknown,
    PaymentRefused,
    ServiceUnavailable,
)
from prefect_assay.orders.job import Payment, PaymentState
from prefect_assay.orders.payments import guard
from prefect_assay.orders.payments.guard import PaymentPolicy
from prefect_assay.orders.payments.interfaces import (
    InvoiceApi,
    Ledger,
    LedgerEntry,
    PaymentAttempt,
    is_success,
    normalize_address,
)
from prefect_assay.orders.payments.rails import Rail
from prefect_assay.orders.payments.reconciliation import Reconciliation
from prefect_assay.orders.payments.terms import SettlementNotice, Terms
from prefect_assay.service.models.billing import Invoice, PayAnswer, usd
from prefect_assay.service.models.status_questions import is_invoice_paid
from prefect_assay.service.models.vocabulary import InvoiceStatus

IDEMPOTENCY_HEADER: Final = "Idempotency-Key"
READ_DELAYS: Final = (
    0.0,
    1.0,
    2.0,
    4.0,
    8.0,
)  # seconds before each reading of an invoice after an unknown outcome
REUSE_SECONDS: Final = 30  # an old authorisation is sent again only with more than this left of its validity

logger = logging.getLogger(__name__)


def utc_now() -> datetime:
    """The wall clock: authorisations expire by it, whatever clock the service keeps."""
    return datetime.now(UTC)


def settle(
    api: InvoiceApi,
    invoice_id: str,
    rail: Rail,
    policy: PaymentPolicy,
    ledger: Ledger,
    *,
    expected_cents: int,
    experiment_id: str | None = None,
    now: Callable[[], datetime] = utc_now,
    sleep: Callable[[float], None] = time.sleep,
    read_delays: Sequence[float] = READ_DELAYS,
) -> Payment:
    """Pay an open invoice by machine, or find it paid; a Payment in state `settled`.

    The invoice's amount must be exactly `expected_cents`, what was approved, and it must belong to the experiment, if one
    is given. The ledger is the order's payment record and must outlive the process. `read_delays` are the seconds before
    each reading of an invoice whose payment has an unknown outcome.

    Raises:
        PaymentsDisabled: payments are off.
        PaymentRefused: the guard refused the terms; nothing was signed or sent.
        BudgetExceeded: over a cap; nothing was signed or sent.
        PaymentFailed: the invoice is not open, or the service refused the payment and it is still unpaid.
        PaymentOutcomeUnknown: money may have moved. A later call is safe: it reads the invoice first.
        OrderStopped: a person has canceled the order; this call sent nothing.
        TransientError: the service was unreachable before anything was sent.
    """
    reconciliation = Reconciliation(api, ledger, rail.method, sleep, read_delays)
    return _Settling(api, rail, policy, ledger, reconciliation, expected_cents, experiment_id, now).run(
        invoice_id
    )


@dataclass(frozen=True)
class _Settling:
    """One call of `settle`."""

    api: InvoiceApi
    rail: Rail
    policy: PaymentPolicy
    ledger: Ledger
    reconciliation: Reconciliation
    cents: int
    experiment_id: str | None
    now: Callable[[], datetime]

    @property
    def base_url(self) -> str:
        return normalize_address(self.api.base_url)

    def run(self, invoice_id: str) -> Payment:
        """From the invoice to a payment. Only this method decides the order of the steps."""
        # From here on only the service's own id: an alias would get a nonce of its own.
        invoice = self.api.get(invoice_id)
        guard.check_owner(invoice, self.experiment_id)
        if is_invoice_paid(invoice.status):
            return self.reconciliation.confirm_paid(invoice, already_paid=True)
        previous = self.ledger.get()
        if previous is None or not previous.in_doubt:
            return self.attempt_payment(invoice, previous)
        invoice = self.reconciliation.watch_invoice(invoice.id) or invoice
        if is_invoice_paid(invoice.status):
            return self.reconciliation.confirm_paid(invoice, already_paid=True)
        try:
            guard.check_repeatable(previous, is_repeatable=self.rail.is_repeatable)
            return self.attempt_payment(invoice, previous)
        except PaymentError as error:
            # "Nothing was paid" would be wrong: an earlier credential may still be settled.
            raise PaymentOutcomeUnknown(
                f"an earlier payment of invoice {invoice.id} was sent, and the invoice does not show it; it is "
                f"not sent again, because: {error}"
            ) from error

    def attempt_payment(self, invoice: Invoice, previous: LedgerEntry | None) -> Payment:
        guard.check_invoice(invoice, self.cents)
        guard.check_ready(self.policy, self.base_url, self.cents)
        answer = self.api.pay(invoice.id)  # the probe: without a credential it pays nothing
        if answer.status_code != HTTPStatus.PAYMENT_REQUIRED:
            return self.handle_unchallenged(invoice, answer)
        agreed_time = guard.check_clock(answer, self.now())
        terms = guard.choose_terms(
            self.rail,
            guard.read_offers(self.rail, answer),
            base_url=self.base_url,
            invoice=invoice,
            cents=self.cents,
            now=self.now(),
        )
        payment = self.describe_attempt(invoice, terms, previous)
        guard.check_again(previous, payment, self.now(), is_repeatable=self.rail.is_repeatable)
        self.ledger.reserve(self.cents, self.policy.rolling_cap(agreed_time))
        return self.send_credential(invoice, terms, payment, previous)

    def describe_attempt(
        self, invoice: Invoice, terms: Terms, previous: LedgerEntry | None
    ) -> PaymentAttempt:
        now = self.now()
        # Another spelling of the service's address must not give the same wallet a second nonce.
        same_wallet = previous is not None and previous.rail is self.rail.method and self.rail.is_repeatable
        if previous and same_wallet and previous.payer == self.rail.payer:
            nonce = previous.nonce
        else:
            nonce = self.rail.make_nonce(self.base_url, invoice.id, terms)
        expires_at = terms.until(now)
        if previous and previous.in_doubt and previous.expires_at > now + timedelta(seconds=REUSE_SECONDS):
            expires_at = previous.expires_at  # the same window and nonce give the identical credential
        return PaymentAttempt(
            invoice_id=invoice.id,
            experiment_id=self.experiment_id,
            rail=self.rail.method,
            payer=self.rail.payer,
            amount_cents=self.cents,
            nonce=nonce,
            network=terms.network,
            asset=terms.asset,
            pay_to=terms.pay_to,
            expires_at=expires_at.replace(microsecond=0),
        )

    def send_credential(
        self, invoice: Invoice, terms: Terms, payment: PaymentAttempt, previous: LedgerEntry | None
    ) -> Payment:
        try:
            credential = self.rail.make_credential(
                terms, nonce=payment.nonce, valid_before=int(payment.expires_at.timestamp())
            )
        except PaymentError:
            if previous is None or not previous.in_doubt:
                self.ledger.release()
            raise
        sent = self.ledger.begin(payment, previous=previous)
        if sent is None:
            return self.another_run(invoice)
        logger.info("invoice %s: paying %s by %s", invoice.id, usd(self.cents), self.rail.method.value)
        idempotency = f"pa-{invoice.id}"
        try:
            answer = self.api.pay(invoice.id, {**credential, IDEMPOTENCY_HEADER: idempotency})
        except Exception as error:  # noqa: BLE001 - whatever it was: the credential may have arrived
            status = getattr(error, "status_code", None)
            response = f"status {status}" if status else f"nothing ({type(error).__name__})"
            return self.resolve_outcome(sent, None, response)
        return self.resolve_outcome(sent, answer, f"status {answer.status_code}")

    def resolve_outcome(self, sent: LedgerEntry, answer: PayAnswer | None, response: str) -> Payment:
        """The outcome of a sent credential. The invoice decides; the answer only explains."""
        notice = self.rail.read_settlement(answer) if answer is not None else SettlementNotice()
        response = f"{response}{f', {notice.reason}' if notice.reason else ''}"
        remark = _build_remark(answer, notice, response)
        latest = self.reconciliation.watch_invoice(sent.invoice_id)
        if latest is not None and is_invoice_paid(latest.status):
            already = answer is not None and bool(answer.body.get("already_paid"))
            return self.reconciliation.confirm_paid(
                latest, already_paid=already, receipt=notice.receipt, remark=remark
            )
        refused = (
            answer is not None
            and answer.status_code == HTTPStatus.PAYMENT_REQUIRED
            and notice.success is False
        )
        still_open = latest is not None and latest.status == InvoiceStatus.OPEN
        first = sent.state is PaymentState.SENT
        if (
            refused
            and still_open
            and first
            and self.reconciliation.record_end(sent, PaymentState.FAILED, remark)
        ):
            raise PaymentFailed(
                f"the service refused the payment of invoice {sent.invoice_id}: {notice.reason or 'no reason given'}"
            )
        self.reconciliation.record_end(sent, PaymentState.UNKNOWN, remark)
        raise PaymentOutcomeUnknown(
            f"a payment of {usd(self.cents)} for invoice {sent.invoice_id} was sent and answered with {response}; the "
            f"invoice is {latest.status if latest else 'not readable'}. Read the invoice before anything else; "
            f"nonce {sent.nonce}, valid until {sent.expires_at:%Y-%m-%d %H:%M:%S} UTC"
        )

    def handle_unchallenged(self, invoice: Invoice, answer: PayAnswer) -> Payment:
        status = answer.status_code
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise ServiceUnavailable(
                f"the pay path of invoice {invoice.id} answered {status}", status_code=status
            )
        if is_success(answer):
            latest = self.reconciliation.watch_invoice(invoice.id)
            if latest is not None and is_invoice_paid(latest.status):
                return self.reconciliation.confirm_paid(latest, already_paid=True)
            page = invoice.provider_hosted_invoice_url
            raise PaymentRefused(
                f"the service asks for no machine payment of invoice {invoice.id}, and it is not paid; "
                f"pay it by hand{f' at {page}' if page else ''}"
            )
        cause = (
            "it is pinned to another payment method" if status == HTTPStatus.CONFLICT else f"status {status}"
        )
        raise PaymentFailed(f"invoice {invoice.id} takes no {self.rail.method.value} payment: {cause}")

    def another_run(self, invoice: Invoice) -> Payment:
        """The record has changed: another run pays, the order is settled, or it is another experiment now."""
        latest = self.reconciliation.watch_invoice(invoice.id)
        if latest is not None and is_invoice_paid(latest.status):
            return self.reconciliation.confirm_paid(latest, already_paid=True)
        raise PaymentOutcomeUnknown(
            f"another run is paying invoice {invoice.id}, or the order is settled; this one sent nothing. Read the "
            "invoice before anything else"
        )


def _build_remark(answer: PayAnswer | None, notice: SettlementNotice, response: str) -> str | None:
    if answer is None or not is_success(answer):
        return f"the payment was answered with {response}"
    return None if notice.success else "the payment was answered without a receipt"
