"""Says what was ordered and paid, from the log of orders in the archive, in words and US cents. Writes nothing."""

from datetime import datetime

from prefect_assay.analysis.results.formats import EMPTY
from prefect_assay.archive.store import Store
from prefect_assay.orders.ledger import Ledgers, OrderLedger, known_archive_id
from prefect_assay.orders.ledger.open_money import (
    OpenMoney,
    describe_status,
    merge_open_money,
    of_logs,
    read_logs,
)
from prefect_assay.orders.payments.rails import name_rail
from prefect_assay.service.models.base import Model


class OrderFacts(Model):
    """One order. `amount_cents` is what was paid or is due, or else what was approved, without VAT; None is unknown."""

    order_key: str | None
    experiment_id: str | None = None
    status: str
    amount_cents: int | None = None
    approved_by: str | None = None
    approved_how: str | None = None  # how that is known
    ordered_at: datetime | None = None
    paid_at: datetime | None = None
    rail: str | None = None
    invoice_id: str | None = None
    receipt: dict[str, str] = {}  # noqa: RUF012  pydantic copies it
    remark: str | None = None
    surplus: tuple[str, ...] = ()

    @property
    def approval(self) -> str:
        """Who has approved the amount, a person or a rule, and how that is known; a dash for nobody."""
        return ": ".join(filter(None, (self.approved_by, self.approved_how))) or EMPTY


def orders_of(store: Store, prefix: str, campaign_id: str) -> tuple[dict[str, OrderFacts], OpenMoney]:
    """The orders of a campaign by order key, and their money; a log that cannot be read is a note of the money."""
    orders: dict[str, OrderFacts] = {}
    if known_archive_id(store, prefix) is None:  # reading a log would make another id
        return orders, OpenMoney()
    parts = []
    for ledgers in Ledgers.list_all(store, prefix):
        logs, notes = read_logs(ledgers, campaign_id)
        parts.append(of_logs(logs, notes))
        for ledger in logs:
            facts = _read_facts(ledger)
            if ledger.order_key not in orders or facts.experiment_id:
                orders[ledger.order_key] = facts
    return orders, merge_open_money(parts)


def _read_facts(ledger: OrderLedger) -> OrderFacts:
    state = ledger.state
    payment, settled, approved = state.payment, state.settled, state.approved
    rail = payment.rail if payment else state.rail
    return OrderFacts(
        order_key=ledger.order_key,
        experiment_id=state.ordered.experiment_id if state.ordered else None,
        status=describe_status(state),
        amount_cents=state.amount_cents,
        approved_by=approved.approver if approved else None,
        approved_how=approved.how if approved else None,
        ordered_at=state.ordered.at if state.ordered else None,
        paid_at=settled.at if settled else None,
        rail=name_rail(rail) if rail else None,
        invoice_id=state.invoice_id,
        receipt=(settled and settled.receipt) or (payment and payment.receipt) or {},
        remark=(settled and settled.remark) or (payment and payment.remark) or None,
        surplus=state.surplus,
    )
