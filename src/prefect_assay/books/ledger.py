"""`OrderLedger`: the payments of one order, recorded in the order's log and the budget."""

from typing import assert_never
from uuid import uuid4

from prefect_assay.books.books import OrderBook
from prefect_assay.books.records import InDoubt, NotSettled, Paying, Settled
from prefect_assay.books.state import OrderState
from prefect_assay.models.job import PaymentState
from prefect_assay.payments.ledger import AttemptEnd, LedgerEntry, PaymentAttempt, RollingCap


class OrderLedger:
    """The `Ledger` of one order, recorded in the order's log and the budget; see there."""

    def __init__(self, book: OrderBook) -> None:
        self._book = book
        self._run = uuid4().hex

    def get(self) -> LedgerEntry | None:
        """See `Ledger`."""
        return self._book.read().payment

    def reserve(self, cents: int, cap: RollingCap) -> None:
        """See `Ledger`."""
        book = self._book
        had = book.books.budget.read().reservations.get(book.order_key)
        book.books.budget.reserve(
            book.order_key,
            book.campaign_id,
            max(cents, had.cents if had else 0),
            campaign_cap_cents=cap.campaign_cents,
            rolling=cap,
            run=self._run,
        )

    def release(self) -> None:
        """See `Ledger`."""
        self._book.books.budget.release(self._book.order_key, payment_only=True, run=self._run)

    def begin(self, attempt: PaymentAttempt, *, previous: LedgerEntry | None) -> LedgerEntry | None:
        """See `Ledger`; None when another run came first, the order is settled, or it is another experiment now."""

        def decide(state: OrderState) -> Paying | None:
            ordered = state.ordered and state.ordered.experiment_id
            changed = state.settled or _key(state.payment) != _key(previous)
            moved = attempt.experiment_id not in {None, ordered}
            return None if changed or moved else Paying(**attempt.attempt())

        if self._book.record(decide) is None:
            self.release()
            return None
        return self._book.state.payment

    def end(
        self,
        entry: LedgerEntry,
        state: AttemptEnd,
        *,
        receipt: dict[str, str] | None = None,
        remark: str | None = None,
    ) -> bool:
        """See `Ledger`."""
        match state:
            case PaymentState.SETTLED:
                return self.paid(entry.invoice_id, entry.amount_cents, receipt=receipt, remark=remark)
            case PaymentState.UNKNOWN:
                return self._record_end(entry, InDoubt(remark=remark))
            case PaymentState.FAILED:
                if entry.state is not PaymentState.SENT:
                    return False  # what is in doubt stays so
                failed = self._record_end(entry, NotSettled(remark=remark))
                if failed:
                    self.release()
                return failed
            case _:
                assert_never(state)

    def _record_end(self, entry: LedgerEntry, end: InDoubt | NotSettled) -> bool:
        written = self._book.record(
            lambda now: None if now.settled or _key(now.payment) != _key(entry) else end
        )
        return written is not None

    def paid(
        self,
        invoice_id: str,
        amount_cents: int | None,
        *,
        receipt: dict[str, str] | None = None,
        remark: str | None = None,
    ) -> bool:
        """See `Ledger`."""
        by_machine = False

        def decide(state: OrderState) -> Settled | None:
            nonlocal by_machine
            by_machine = state.payment is not None and state.payment.in_doubt
            if state.settled or state.ordered is None:
                return None
            return Settled(invoice_id=invoice_id, amount_cents=amount_cents, receipt=receipt, remark=remark)

        written = self._book.record(decide)
        if written and not by_machine:
            self._book.books.budget.release(self._book.order_key, payment_only=True)
        return written is not None


def _key(entry: LedgerEntry | None) -> tuple[str, PaymentState] | None:
    return (entry.id, entry.state) if entry else None
