"""The payment record of one order: who may send a credential, what became of it, and what counts."""

from datetime import UTC, datetime, timedelta

import pytest

from prefect_assay.errors import ArchiveError, BudgetExceeded
from prefect_assay.orders.job import PaymentState
from prefect_assay.orders.ledger import PaymentLedger
from prefect_assay.orders.payments.interfaces import RollingCap
from support.archive.memory_store import MemoryStore, an_attempt, make_ledger, spent_cents

SINCE = datetime.now(UTC) - timedelta(days=30)
CAP = RollingCap(max_cents=10_000, since=SINCE, at=datetime.now(UTC))


class Run:
    """One run of an order, with a log and a ledger of its own."""

    def __init__(self, store, key="k"):
        self.ledger = make_ledger(store, key=key)
        self.payment_ledger = PaymentLedger(self.ledger)

    def begin(self, previous=None, **changes):
        self.payment_ledger.reserve(3000, CAP)
        return self.payment_ledger.begin(an_attempt(**changes), previous=previous)

    def spent(self):
        return spent_cents(self.ledger, SINCE)

    def committed(self):
        return self.ledger.ledgers.budget.read().campaign_cents("c")

    def kinds(self):
        return [record.kind for record in self.ledger.records()][2:]


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def run(store):
    return Run(store)


def another(run, key="k"):
    return Run(run.ledger.ledgers.store, key)


def test_an_attempt_is_what_the_next_run_reads(run):
    sent = run.begin()
    assert sent.state is PaymentState.SENT
    assert another(run).payment_ledger.get() == sent
    assert sent.attempt() == an_attempt(expires_at=sent.expires_at).attempt()


def test_a_settlement_and_its_receipt_are_kept_once(run):
    sent = run.begin()
    assert run.payment_ledger.record_paid(
        sent.invoice_id, sent.amount_cents, receipt={"a": "b"}, remark="odd"
    )
    assert not another(run).payment_ledger.record_paid("inv_1", 3000, receipt={"c": "d"})
    entry = another(run).payment_ledger.get()
    assert (entry.state, entry.receipt, entry.remark) == (PaymentState.SETTLED, {"a": "b"}, "odd")
    assert run.kinds() == ["paying", "settled"]
    assert run.spent() == run.committed() == 3000


@pytest.mark.parametrize(
    ("end", "counts"),
    [(None, 3000), (PaymentState.UNKNOWN, 3000), (PaymentState.SETTLED, 3000), (PaymentState.FAILED, 0)],
)
def test_everything_but_a_failure_counts_as_spent(run, end, counts):
    sent = run.begin()
    if end is PaymentState.SETTLED:
        run.payment_ledger.record_paid(sent.invoice_id, sent.amount_cents)
    elif end:
        run.payment_ledger.record_outcome(sent, end)
    assert run.spent() == counts
    assert spent_cents(run.ledger, datetime.now(UTC) + timedelta(seconds=1)) == 0


def test_a_refused_run_frees_nothing_of_a_run_that_pays_meanwhile(run):
    """NotSettled is recorded, another run begins, and only then the first one releases."""
    sent, later = run.begin(), another(run)
    release = run.payment_ledger.release

    def after_the_other_has_begun():
        assert later.begin(later.payment_ledger.get())
        release()

    run.payment_ledger.release = after_the_other_has_begun
    assert run.payment_ledger.record_outcome(sent, PaymentState.FAILED)
    assert run.spent() == 3000


def test_a_run_whose_token_is_not_issued_frees_nothing_of_a_run_that_pays_meanwhile(run):
    late = another(run)
    run.payment_ledger.reserve(3000, CAP)
    late.payment_ledger.reserve(3000, CAP)
    late.payment_ledger.release()
    assert run.payment_ledger.begin(an_attempt(), previous=None)
    assert run.spent() == 3000


def test_a_refusal_is_recorded_for_the_last_and_first_hand_attempt_only(run):
    sent = run.begin()
    assert run.payment_ledger.record_outcome(sent, PaymentState.FAILED, remark="no funds")
    assert not run.payment_ledger.record_outcome(sent, PaymentState.FAILED)
    assert run.spent() == 0
    failed = another(run).payment_ledger.get()
    assert (failed.state, failed.remark) == (PaymentState.FAILED, "no funds")
    again = another(run)
    second = again.begin(failed)
    assert second.state is PaymentState.SENT
    assert not run.payment_ledger.record_outcome(sent, PaymentState.FAILED)
    assert run.payment_ledger.get() == second
    assert run.spent() == 3000


def test_what_is_in_doubt_stays_so_until_it_is_settled(run):
    sent = run.begin()
    assert run.payment_ledger.record_outcome(sent, PaymentState.UNKNOWN, remark="lost")
    assert not run.payment_ledger.record_outcome(sent, PaymentState.FAILED)
    later = another(run)
    second = later.begin(later.payment_ledger.get())
    assert (second.state, second.remark) == (PaymentState.UNKNOWN, "lost")
    assert not later.payment_ledger.record_outcome(second, PaymentState.FAILED, remark="no funds")
    assert later.payment_ledger.get().state is PaymentState.UNKNOWN
    assert run.spent() == 3000
    assert later.payment_ledger.record_outcome(second, PaymentState.UNKNOWN)
    assert later.payment_ledger.record_paid("inv_1", 3000)
    assert another(run).payment_ledger.get().state is PaymentState.SETTLED
    assert run.spent() == 3000


def test_a_payment_in_doubt_counts_although_the_invoice_shows_another_one(run):
    run.payment_ledger.record_outcome(run.begin(), PaymentState.UNKNOWN)
    assert another(run).payment_ledger.record_paid("inv_1", 3000)
    assert run.spent() == 3000


def test_no_payment_begins_before_the_order_or_for_another_experiment(store):
    unordered = make_ledger(store, key="new", experiment=None)
    assert PaymentLedger(unordered).begin(an_attempt(), previous=None) is None
    with pytest.raises(ArchiveError, match="contradicts"):
        PaymentLedger(unordered).begin(an_attempt(experiment_id=None), previous=None)
    assert not PaymentLedger(unordered).record_paid("inv_1", 3000)
    run = Run(store)
    assert run.begin(experiment_id="exp_2") is None
    assert run.spent() == 0
    assert run.kinds() == []


def test_an_invoice_above_the_reservation_is_checked_and_one_below_keeps_it(run):
    budget = run.ledger.ledgers.budget
    budget.reserve("k", "c", 4000, campaign_cap_cents=4000)
    run.payment_ledger.reserve(3000, CAP.model_copy(update={"campaign_cents": 4000}))
    assert run.committed() == 4000
    with pytest.raises(BudgetExceeded) as over:
        run.payment_ledger.reserve(4001, CAP.model_copy(update={"campaign_cents": 4000}))
    assert over.value.cap == "campaign"
    with pytest.raises(BudgetExceeded) as over:
        another(run, "k2").payment_ledger.reserve(6001, CAP)
    assert over.value.cap == "rolling"
