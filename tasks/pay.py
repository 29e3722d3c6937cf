"""Pay an invoice once: by machine within the policy, or by a person at the hosted page."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from prefect import task
from prefect.logging import get_run_logger

from prefect_assay.blocks import AssayCredentials, SharedPaymentTokens, SpendingPolicy, Wallet, X402Wallet
from prefect_assay.books import OrderBook, OrderLedger
from prefect_assay.client import AssayClient
from prefect_assay.errors import (
    AssayError,
    ConfigurationError,
    ExperimentCanceled,
    PaymentError,
    PaymentFailed,
    PaymentOutcomeUnknown,
    PaymentsDisabled,
    UnexpectedAnswer,
    is_absent,
)
from prefect_assay.models.billing import Invoice, usd
from prefect_assay.models.job import Order, Payment, PaymentState
from prefect_assay.models.vocabulary import MACHINE_RAILS, ExperimentStatus, InvoiceStatus, PaymentMethod
from prefect_assay.payments import PaymentPolicy, Rail, hosted, rail_for, settle
from prefect_assay.payments.guard_terms import caip19, unpaired
from prefect_assay.payments.reconciliation import read_invoice
from prefect_assay.runs.transient_failures import ONCE, READ
from prefect_assay.tasks.quote import require_order

_UNPAID: Final = frozenset({InvoiceStatus.DRAFT, InvoiceStatus.OPEN})


def require_rail(method: PaymentMethod, policy: SpendingPolicy, wallet: Wallet | None) -> None:
    """Check, before an order, that the chosen rail can pay.

    Raises:
        PaymentsDisabled: machine payments are off in the policy, or the wallet is missing or another rail's.
        ConfigurationError: the rail does not exist, its extra is missing, or the wallet is unusable or ambiguous.
    """
    if method not in MACHINE_RAILS:
        return
    _rail(method, wallet)
    vague = unpaired(wallet.networks, wallet.assets) if isinstance(wallet, X402Wallet) else ()
    if vague:
        raise ConfigurationError(
            f"the X402Wallet block allows several networks, and its assets do not say which of them they are on: "
            f"{', '.join(vague)}; nothing was ordered or paid. Write each as {caip19('eip155:8453', '0x...')}"
        )
    if not policy.machine_payments:
        raise PaymentsDisabled(
            f"payment by {method} is chosen, but machine payments are off; nothing was ordered. Turn on machine_payments of "
            "the SpendingPolicy block, or choose async_invoice to pay the invoice by hand"
        )


@task(name="read-due", **READ)
def read_due(credentials: AssayCredentials, order: Order, *, book: OrderBook) -> int | None:
    """The open amount of the order's invoice, in US cents; None if it is paid.

    Raises:
        ExperimentCanceled: the invoice is open, and must not be paid.
        PaymentFailed: there is no invoice, or it names no amount.
        PaymentOutcomeUnknown: as ExperimentCanceled, after a payment that may have been made.
        TransientError: the order has another experiment by now.
    """
    with credentials.get_client() as client:
        invoice = _invoice_of(client, order, book)
        require_order(book, order.experiment_id)
        _refuse_canceled(client, order, invoice, book)
    if invoice.status == InvoiceStatus.PAID:
        return None
    if invoice.amount is None:
        raise PaymentFailed(
            f"invoice {invoice.id} names no amount, so nothing can be compared and nothing is paid"
        )
    return invoice.amount


@task(name="pay-invoice", **ONCE)
def pay_invoice(
    credentials: AssayCredentials,
    order: Order,
    *,
    book: OrderBook,
    policy: SpendingPolicy,
    wallet: Wallet | None,
    method: PaymentMethod,
    limit_cents: int,
    sums: Mapping[str, int] | None = None,
) -> Payment:
    """Read the order's invoice, and pay it if it is open and within the limit.

    Args:
        credentials: the token that ordered.
        order: the order.
        book: the order's log.
        policy: allows machine payments and sets the rolling cap.
        wallet: the wallet of a machine rail.
        method: the rail; `async_invoice` pays nothing and returns the hosted page.
        limit_cents: the approved amount for this order, in US cents.
        sums: caps of the budget's sums, in US cents: `rolling` replaces the policy's, and `campaign`.

    Raises:
        ExperimentCanceled: the invoice is open, and must not be paid.
        PaymentError: nothing was paid.
        PaymentOutcomeUnknown: money may have moved. Another run reads the invoice first.
        TransientError: the order has another experiment by now; nothing was paid.
    """
    with credentials.get_client() as client:
        invoice = _invoice_of(client, order, book, reissued=method not in MACHINE_RAILS)
        require_order(book, order.experiment_id)
        _refuse_canceled(client, order, invoice, book)
        ledger = OrderLedger(book)
        if method not in MACHINE_RAILS:
            _count(book, invoice)
            if invoice.status in _UNPAID:
                book.saw_invoice(invoice.id, invoice.amount)
            return _hosted_invoice(client, invoice, ledger)
        with _next_step(invoice):
            payment = settle(
                client,
                invoice.id,
                _rail(method, wallet),
                _guard_policy(credentials, policy, wallet, limit_cents, sums or {}),
                ledger,
                expected_cents=min(invoice.amount or 0, limit_cents),
                experiment_id=order.experiment_id,
            )
    get_run_logger().info(
        "Invoice %s: %s%s", payment.invoice_id, payment.state, ", paid before" if payment.already_paid else ""
    )
    return payment


def _refuse_canceled(client: AssayClient, order: Order, invoice: Invoice, book: OrderBook) -> None:
    """Contract 3 does not promise that a cancellation voids the invoice."""
    if invoice.status in {InvoiceStatus.PAID, InvoiceStatus.VOID}:
        return
    if client.experiment(order.experiment_id).status != ExperimentStatus.CANCELED:
        return
    remains = (
        f"experiment {order.experiment_code or order.experiment_id} was canceled, and its invoice {invoice.id} is "
        f"{invoice.status or 'unpaid'}: it must not be paid, and is not paid by this run. Ask the laboratory to void it"
    )
    sent = book.read().payment
    if sent and sent.in_doubt:
        raise PaymentOutcomeUnknown(f"{remains}. A payment that was sent before may still settle")
    raise ExperimentCanceled(remains)


@contextmanager
def _next_step(invoice: Invoice) -> Iterator[None]:
    """Add the next step to the message, for the run's state in the UI."""
    try:
        yield
    except PaymentError as error:
        page = invoice.provider_hosted_invoice_url
        if invoice.status == InvoiceStatus.OPEN:
            by_hand = f", or pay the invoice by hand: {page}" if page else ""
            error.message += (
                f"\nNothing was paid. The order remains: fix the cause and retry the run{by_hand}"
            )
        else:
            error.message += "\nThe order remains: ask the laboratory about its invoice, then retry the run"
        raise


def _rail(method: PaymentMethod, wallet: Wallet | None) -> Rail:
    return rail_for(
        method,
        private_key=wallet.private_key if isinstance(wallet, X402Wallet) else None,
        issue_token=wallet.get_issuer() if isinstance(wallet, SharedPaymentTokens) else None,
    )


def record_hosted(
    client: AssayClient, order: Order, *, book: OrderBook, shown: str | None = None
) -> Payment | None:
    """Record in the order's log that a person has paid the hosted invoice; None while it is unpaid.

    An unpaid one is returned as well if its page, or its id as long as it has none, is not the one `shown`.

    Raises:
        PaymentFailed: the invoice cannot be paid any more.
        TransientError: the order has another experiment by now.
    """
    invoice = _invoice_of(client, order, book, reissued=True)
    require_order(book, order.experiment_id)
    if invoice.status in _UNPAID and (invoice.provider_hosted_invoice_url or invoice.id) == shown:
        return None
    return _recorded(client, invoice, OrderLedger(book))


def _count(book: OrderBook, invoice: Invoice) -> None:
    """Count a hosted invoice that bills more than was approved: it is committed, and the caps are about what remains."""
    approved = book.state.approved
    billed = 0 if invoice.status == InvoiceStatus.VOID else invoice.amount or 0
    if approved is None or billed <= approved.amount_cents:
        return
    book.books.budget.reserve(book.order_key, book.campaign_id, billed)
    get_run_logger().error(
        "Invoice %s bills %s, and %s was approved: ask the laboratory why",
        invoice.id,
        usd(billed),
        usd(approved.amount_cents),
    )


def _hosted_invoice(client: AssayClient, invoice: Invoice, ledger: OrderLedger) -> Payment:
    """The hosted invoice. A void invoice is logged as an error; waiting continues."""
    try:
        return _recorded(client, invoice, ledger)
    except PaymentFailed as error:
        get_run_logger().error("%s; ask the laboratory", error)
        return Payment(invoice_id=invoice.id, method=PaymentMethod.ASYNC_INVOICE, state=PaymentState.FAILED)


def _recorded(client: AssayClient, invoice: Invoice, ledger: OrderLedger) -> Payment:
    payment = hosted(client, invoice)
    if payment.state is PaymentState.SETTLED:
        ledger.paid(invoice.id, invoice.amount)
    return payment


def _guard_policy(
    credentials: AssayCredentials,
    policy: SpendingPolicy,
    wallet: Wallet | None,
    limit_cents: int,
    sums: Mapping[str, int],
) -> PaymentPolicy:
    chain = wallet if isinstance(wallet, X402Wallet) else None
    return PaymentPolicy(
        enabled=policy.machine_payments,
        max_cents_per_payment=limit_cents,
        max_cents_rolling=sums.get("rolling", policy.rolling_cents),
        max_cents_per_campaign=sums.get("campaign"),
        rolling_days=policy.rolling_days,
        allowed_origins=(credentials.base_url,),
        allowed_networks=tuple(chain.networks) if chain else (),
        allowed_assets=tuple(chain.assets) if chain else (),
        allowed_pay_to=tuple(chain.pay_to) if chain else (),
        allowed_network_ids=tuple(policy.network_ids),
    )


def _invoice_of(client: AssayClient, order: Order, book: OrderBook, *, reissued: bool = False) -> Invoice:
    """The invoice by the id in the order's log, if it names the experiment; else by its experiment.

    With `reissued`, an invoice that was issued in place of a void one counts: a person pays that one. A machine never
    pays a second invoice of an order. An invoice that no list names is paid by a person, at the page of its experiment.
    """
    ordered = book.read().ordered
    if ordered is not None and ordered.invoice_id and ordered.experiment_id == order.experiment_id:
        try:
            invoice = client.invoice_by_id(ordered.invoice_id)
        except AssayError as error:
            if not (reissued and is_absent(error)):  # the contract does not have this call
                raise
        else:
            void = reissued and invoice.status == InvoiceStatus.VOID
            if invoice.experiment_id == order.experiment_id and not void:
                return invoice
    if reissued:
        return read_invoice(client, order.experiment_id)
    try:
        found = client.find_invoice(order.experiment_id)
    except UnexpectedAnswer as error:
        # The contract does not have the list, and an invoice must not wait for it. Once a payment was sent, it was there.
        if book.state.payment is not None or not is_absent(error):
            raise
        found = None
    if found is None:
        raise PaymentFailed(
            f"experiment {order.experiment_code} has an invoice that the service does not list; "
            f"open it in the portal: {order.hosted_invoice_url or order.experiment_url}"
        )
    return found
