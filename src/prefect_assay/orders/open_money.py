"""The open money of one service account: the logs of its orders, compared with what the service shows.

The log says which experiments are ours, and the service what became of them: a person may pay, reject or cancel
without a run. Nothing is changed here.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from prefect_assay.errors import AssayError, NotFound, NotReady, TransientError
from prefect_assay.orders.find import rank_seniority
from prefect_assay.orders.identity import search_token
from prefect_assay.orders.ledger import OrderLedger
from prefect_assay.orders.ledger.open_money import OpenItem, OpenKind, OpenMoney, is_closed, item_of
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.billing import Invoice, usd
from prefect_assay.service.models.experiment import Experiment
from prefect_assay.service.models.status_questions import (
    is_before_acceptance,
    is_invoice_paid,
    is_invoice_payable,
    is_quote_expired,
    is_quote_open,
    is_quote_rejected,
)
from prefect_assay.service.models.vocabulary import (
    ExperimentStatus,
    InvoiceStatus,
    PaymentMethod,
)
from prefect_assay.service.words import in_words

# What is not in the list sorts last: of several invoices of one experiment the one that counts comes first.
_WEIGHT: Final[dict[str | None, int]] = {
    InvoiceStatus.PAID: 0,
    InvoiceStatus.OPEN: 1,
    InvoiceStatus.DRAFT: 2,
    InvoiceStatus.UNCOLLECTIBLE: 3,
}
_COLLECT: Final = (
    "its results are at the laboratory: an open campaign collects them itself, and one that is over when it is started again "
    "with the same id"
)
_VOID: Final = "do not pay it, and ask the laboratory to void it"
_IN_DOUBT: Final = "a payment was sent, and may have been made: look at the wallet before you pay"
_NOT_SHOWN: Final = (
    "an order was sent, its answer was lost, and the service shows no experiment of it: start the campaign again, which "
    "looks again before it orders"
)
_SUBMITTED_LATER: Final = "it is a draft, which the next look of its campaign submits"
_ENDED: Final[Mapping[str | None, str]] = {
    ExperimentStatus.DRAFT: "its quote was rejected or withdrawn",
    ExperimentStatus.CANCELED: "the experiment was canceled",
}


@dataclass(frozen=True)
class OrderCheck:
    """One order, as its log and the service show it; `item` is None if nothing is open."""

    ledger: OrderLedger
    item: OpenItem | None
    invoice: Invoice | None = None  # the one that counts
    ended: str | None = None  # why the order came to nothing, without an invoice

    @property
    def is_paid(self) -> bool:
        """The service shows the invoice as paid."""
        return self.invoice is not None and is_invoice_paid(self.invoice.status)

    @property
    def is_due(self) -> bool:
        """The service shows an invoice that can be paid."""
        return self.invoice is not None and is_invoice_payable(self.invoice.status)


@dataclass(frozen=True)
class OrderChecks:
    """All orders of one account that are not closed, and the experiments that were made in addition to them.

    `recorded` is what the logs have where the service was not asked. Without `complete` not even that could be read.
    """

    checks: tuple[OrderCheck, ...] = ()
    surplus: tuple[OpenItem, ...] = ()
    recorded: tuple[OpenItem, ...] = ()
    notes: tuple[str, ...] = ()
    complete: bool = True
    paid: dict[str, int] = field(default_factory=dict)  # by campaign, by the logs

    @property
    def open_money(self) -> OpenMoney:
        """All open sums, with invoices that the service shows as paid and no log has added to `paid`."""
        items = [*(check.item for check in self.checks if check.item), *self.surplus, *self.recorded]
        paid_by_campaign = Counter(self.paid)  # with what the service shows as paid and no log has
        for check in self.checks:
            state = check.ledger.state
            if check.is_paid and check.invoice and state.planned and not state.settled:
                paid_by_campaign[state.planned.campaign_id] += check.invoice.amount or 0
        return OpenMoney(
            items=tuple(items), notes=self.notes, complete=self.complete, paid=dict(paid_by_campaign)
        )


def check_orders(logs: Iterable[OrderLedger], api: AssayClient, now: datetime | None = None) -> OrderChecks:
    """Read what the service shows of every order that is not closed by its log; the logs are read before.

    An order that cannot be read stays as its log has it, and a note says so. A quote expires by the service's clock, or at `now`.
    """
    logs = [log for log in logs if not is_closed(log.state)]
    service = _Service(api, now)
    checks = tuple(service.check_order(log) for log in logs)
    surplus = tuple(item for log in logs for item in service.list_surplus(log))
    return OrderChecks(checks, surplus, notes=tuple(dict.fromkeys(service.notes)))


@dataclass
class _Service:
    api: AssayClient
    now: datetime | None
    notes: list[str] = field(default_factory=list)
    _invoices: Mapping[str, list[Invoice]] | None = None

    def check_order(self, ledger: OrderLedger) -> OrderCheck:
        known = item_of(ledger)
        try:
            experiment = self._find_experiment(ledger)
            if experiment is not None:
                invoice = self._find_invoice(experiment)
                if invoice is not None and is_invoice_paid(invoice.status) and ledger.state.settled is None:
                    self._require_paid_again(experiment)
                return self._judge_order(ledger, experiment, invoice)
            return OrderCheck(
                ledger, known and known.model_copy(update={"amount_cents": None, "remark": _NOT_SHOWN})
            )
        except NotFound:
            if known is not None:
                self.notes.append(f"the service does not show experiment {known.name}, which was ordered")
        except AssayError as error:
            self.notes.append(
                f"the service could not be asked, so this is what the archive has: {error.message}"
            )
        return OrderCheck(ledger, known)

    def _find_experiment(self, ledger: OrderLedger) -> Experiment | None:
        """The experiment of an order; also of one that was sent without an answer, by the key in its name."""
        if ledger.state.ordered is not None:
            return self.api.experiments.get(ledger.state.ordered.experiment_id)
        if not ledger.state.open_attempts:
            return None
        token = search_token(ledger.order_key)
        rows = [
            row for row in self.api.experiments.iterate(search=token) if token in (row.name or "").split()
        ]
        senior = min(rows, key=rank_seniority, default=None)
        return self.api.experiments.get(senior.id) if senior else None

    def list_surplus(self, ledger: OrderLedger) -> Iterable[OpenItem]:
        """Experiments with the order's key that are not the order, and have a bill."""
        current = ledger.state.ordered.experiment_id if ledger.state.ordered else None
        for experiment_id in dict.fromkeys(ledger.state.surplus):
            if experiment_id == current:
                continue
            try:
                experiment = self.api.experiments.get(experiment_id)
                invoice = self._find_invoice(experiment)
            except AssayError:
                continue  # neither confirmed nor paid by any run
            check = OrderCheck(ledger, None, invoice)
            if not (check.is_paid or check.is_due):
                continue
            refund = (OpenKind.TO_REFUND, "ask the laboratory for a refund")
            kind, then = refund if check.is_paid else (OpenKind.TO_VOID, _VOID)
            made = self._make_item(
                ledger, experiment, kind, invoice, f"it was made in addition to the order: {then}"
            )
            yield made.model_copy(update={"surplus": True})

    def _find_invoice(self, experiment: Experiment) -> Invoice | None:
        """The invoice of an experiment that counts; None without one."""
        if self._invoices is None:
            self._invoices = self._read_invoices_by_experiment()
        rows = sorted(self._invoices.get(experiment.id, ()), key=lambda row: _WEIGHT.get(row.status, 9))
        if rows and rows[0].amount is not None:
            return rows[0]
        try:
            shown = self.api.experiments.get_invoice(experiment.id)
        except NotReady:
            return rows[0] if rows else None
        return Invoice(
            id=rows[0].id if rows else shown.id or f"of {experiment.code}",
            status=shown.status,
            amount=experiment.billed_cents,
            experiment_id=experiment.id,
            provider_hosted_invoice_url=shown.provider_invoice_url,
        )

    def _require_paid_again(self, experiment: Experiment) -> None:
        """What only one answer shows as paid is not recorded: a wrong answer would be final in the ledger."""
        try:
            status = self.api.experiments.get_invoice(experiment.id).status
        except NotReady:
            status = None
        if not is_invoice_paid(status):
            raise TransientError(
                f"the invoice of experiment {experiment.code} read as paid, and then as {status or 'missing'}"
            )

    def _read_invoices_by_experiment(self) -> Mapping[str, list[Invoice]]:
        invoices: defaultdict[str, list[Invoice]] = defaultdict(list)
        try:
            for row in self.api.invoices.iterate():
                if row.experiment_id:
                    invoices[row.experiment_id].append(row)
        except AssayError:
            return {}  # no part of the contract: each experiment shows its own
        return invoices

    def _judge_order(
        self, ledger: OrderLedger, experiment: Experiment, invoice: Invoice | None
    ) -> OrderCheck:
        if invoice is None and ledger.state.settled is not None:
            return OrderCheck(ledger, item_of(ledger))
        check = OrderCheck(ledger, None, invoice)
        if not (check.is_paid or check.is_due):
            waived = invoice is not None and invoice.status == InvoiceStatus.VOID
            if waived and ledger.state.delivered is not None:
                return check  # nothing is billed, and nothing is still to come
            return self._without_bill(ledger, experiment, invoice)
        canceled = experiment.status == ExperimentStatus.CANCELED
        payment = ledger.state.payment
        if check.is_paid and not canceled and ledger.state.delivered is not None:
            return check
        match check.is_paid, canceled:
            case True, True:
                kind, remark = OpenKind.TO_REFUND, "the laboratory has canceled it: ask for a refund"
            case True, False:
                done = experiment.status == ExperimentStatus.DONE
                kind, remark = OpenKind.TO_DELIVER, _COLLECT if done else _describe_stage(experiment)
            case False, True:
                kind, remark = OpenKind.TO_VOID, f"the experiment is canceled: {_VOID}"
            case _:
                by_hand = ledger.state.rail is PaymentMethod.ASYNC_INVOICE
                approved = ledger.state.approved.amount_cents if ledger.state.approved else None
                how = describe_hosted_bill(invoice, approved) if by_hand and invoice else ""
                in_doubt = payment is not None and payment.in_doubt
                kind, remark = (
                    OpenKind.TO_PAY,
                    _IN_DOUBT if in_doubt else f"{_describe_stage(experiment)}{how}",
                )
        return replace(check, item=self._make_item(ledger, experiment, kind, invoice, remark))

    def _without_bill(
        self, ledger: OrderLedger, experiment: Experiment, invoice: Invoice | None
    ) -> OrderCheck:
        """No invoice can be paid: a quote waits, came to nothing, or the laboratory works without an invoice."""
        is_new = experiment.status == ExperimentStatus.DRAFT and ledger.state.ordered is None
        if not is_new and (ended := _ENDED.get(experiment.status)):
            return OrderCheck(ledger, None, ended=ended)
        if not is_new and not is_before_acceptance(experiment.status):
            return self._describe_unsure(ledger, experiment, invoice, _describe_stage(experiment))
        try:
            quote = self.api.experiments.get_quote(experiment.id)
        except NotReady:
            remark = _SUBMITTED_LATER if is_new else "the laboratory prepares it"
            return OrderCheck(ledger, self._make_item(ledger, experiment, OpenKind.QUOTE, None, remark))
        rejected = is_quote_rejected(quote.status)
        now = self.now or self.api.service_time  # this machine's clock may be wrong
        expired = now is not None and quote.expires_at is not None and quote.expires_at <= now
        if rejected or expired or is_quote_expired(quote.status):
            return OrderCheck(ledger, None, ended=f"the quote {'was rejected' if rejected else 'expired'}")
        if not is_quote_open(quote.status):
            return self._describe_unsure(
                ledger, experiment, invoice, f"the quote is {in_words(quote.status)}"
            )
        item = self._make_item(ledger, experiment, OpenKind.QUOTE, None, None)
        changes = {
            "amount_cents": quote.total,
            "until": quote.expires_at,
            "url": quote.provider_quote_url or item.url,
        }
        return OrderCheck(ledger, item.model_copy(update=changes))

    def _describe_unsure(
        self, ledger: OrderLedger, experiment: Experiment, invoice: Invoice | None, what: str
    ) -> OrderCheck:
        why = f"the invoice is {in_words(invoice.status)}" if invoice else "no invoice is listed yet"
        item = self._make_item(
            ledger, experiment, OpenKind.UNSURE, invoice, f"{what}, and {why}: ask the laboratory"
        )
        return OrderCheck(ledger, item.model_copy(update={"amount_cents": None}))

    def _make_item(
        self,
        ledger: OrderLedger,
        experiment: Experiment,
        kind: OpenKind,
        invoice: Invoice | None,
        remark: str | None,
    ) -> OpenItem:
        known = item_of(ledger)
        ordered = ledger.state.ordered
        since = known.since if known else ordered.at if ordered else experiment.created_at
        if invoice is not None and kind is not OpenKind.TO_DELIVER and invoice.created_at is not None:
            since = min(since, invoice.created_at)
        page = invoice.provider_hosted_invoice_url if invoice and kind is OpenKind.TO_PAY else None
        return OpenItem(
            kind=kind,
            campaign_id=ledger.state.planned.campaign_id if ledger.state.planned else ledger.campaign_id,
            order_key=ledger.order_key,
            experiment_id=experiment.id,
            experiment_code=experiment.code,
            amount_cents=invoice.amount if invoice else None,
            since=since,
            url=page or experiment.experiment_url,
            remark=remark,
        )


def _describe_stage(experiment: Experiment) -> str:
    """Where the laboratory is at this moment, in words; a campaign's last look may be older."""
    return f"the service shows now: {in_words(experiment.status)}"


def describe_hosted_bill(invoice: Invoice, approved_cents: int | None) -> str:
    """What a person does about an open hosted invoice: pay it, or ask why it bills more than was approved."""
    if approved_cents is not None and invoice.amount is not None and invoice.amount > approved_cents:
        return (
            f"; it bills more than the approved {usd(approved_cents)}: ask the laboratory why before you pay"
        )
    return "; pay it by its link" if invoice.provider_hosted_invoice_url else ""
