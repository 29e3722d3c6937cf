"""The payment record of one order: who may send a credential, what became of it, and what counts."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from prefect_assay.archive import LocalStore
from prefect_assay.errors import ArchiveError, ArchiveUnavailable, BudgetExceeded, ConfigurationError
from prefect_assay.orders.job import PaymentState
from prefect_assay.orders.ledger import OrderLedger
from prefect_assay.orders.ledger.log import (
    Confirming,
    Paying,
    Settled,
    Surplus,
)
from prefect_assay.orders.payments import RollingCap
from support.archive.memory_store import MemoryStore, a_book, an_attempt, spent_cents

SINCE = datetime.now(UTC) - timedelta(days=30)
CAP = RollingCap(max_cents=10_000, since=SINCE, at=datetime.now(UTC))


class Run:
    """One run of an order, with a log and a ledger of its own."""

    def __init__(self, store, key="k"):
        self.book = a_book(store, key=key)
        self.ledger = OrderLedger(self.book)

    def begin(self, previous=None, **changes):
        self.ledger.reserve(3000, CAP)
        return self.ledger.begin(an_attempt(**changes), previous=previous)

    def spent(self):
        return spent_cents(self.book, SINCE)

    def committed(self):
        return self.book.books.budget.read().campaign_cents("c")

    def kinds(self):
        return [record.kind for record in self.book.records()][2:]


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def run(store):
    return Run(store)


def another(run, key="k"):
    return Run(run.book.books.store, key)


def test_an_attempt_is_what_the_next_run_reads(run):
    sent = run.begin()
    assert sent.state is PaymentState.SENT
    assert another(run).ledger.get() == sent
    assert sent.attempt() == an_attempt(expires_at=sent.expires_at).attempt()


def test_a_settlement_and_its_receipt_are_kept_once(run):
    sent = run.begin()
    assert run.ledger.paid(sent.invoice_id, sent.amount_cents, receipt={"a": "b"}, remark="odd")
    assert not another(run).ledger.paid("inv_1", 3000, receipt={"c": "d"})
    entry = another(run).ledger.get()
    assert (entry.state, entry.receipt, entry.remark) == (PaymentState.SETTLED, {"a": "b"}, "odd")
    assert run.kinds() == ["paying", "settled"]
    assert run.spent() == run.committed() == 3000


@pytest.mark.parametrize(
    ("end", "counts"),
    [
        (None, 3000),
        (PaymentState.UNKNOWN, 3000),
        (PaymentState.SETTLED, 3000),
        (PaymentState.FAILED, 0),
    ],
)
def test_everything_but_a_failure_counts_as_spent(run, end, counts):
    sent = run.begin()
    if end is PaymentState.SETTLED:
        run.ledger.paid(sent.invoice_id, sent.amount_cents)
    elif end:
        run.ledger.end(sent, end)
    assert run.spent() == counts
    assert spent_cents(run.book, datetime.now(UTC) + timedelta(seconds=1)) == 0


@pytest.mark.parametrize("previous", ["none", "failed"])
def test_of_runs_that_race_one_begins(run, previous):
    before = None
    if previous == "failed":
        run.ledger.end(run.begin(), PaymentState.FAILED)
        before = run.ledger.get()
    barrier = threading.Barrier(8)

    def race(number):
        racer = another(run)
        seen = racer.ledger.get()
        assert seen == before
        barrier.wait(20)
        return racer.begin(seen, nonce=f"0x{number}")

    with ThreadPoolExecutor(8) as pool:
        (own,) = [sent for sent in pool.map(race, range(8)) if sent]
    assert another(run).ledger.get() == own
    assert own.state is PaymentState.SENT
    assert run.spent() == 3000


def test_a_run_that_was_not_first_releases_its_part_and_the_payment_under_way_counts(run):
    late = another(run)
    late.ledger.reserve(3000, CAP)
    sent = run.begin()
    assert late.ledger.begin(an_attempt(), previous=None) is None
    assert run.spent() == 3000
    run.ledger.end(sent, PaymentState.FAILED)
    assert run.spent() == 0


def test_a_refused_run_frees_nothing_of_a_run_that_pays_meanwhile(run):
    """NotSettled is recorded, another run begins, and only then the first one releases."""
    sent, later = run.begin(), another(run)
    release = run.ledger.release

    def after_the_other_has_begun():
        assert later.begin(later.ledger.get())
        release()

    run.ledger.release = after_the_other_has_begun
    assert run.ledger.end(sent, PaymentState.FAILED)
    assert run.spent() == 3000


def test_a_run_whose_token_is_not_issued_frees_nothing_of_a_run_that_pays_meanwhile(run):
    late = another(run)
    run.ledger.reserve(3000, CAP)
    late.ledger.reserve(3000, CAP)
    late.ledger.release()
    assert run.ledger.begin(an_attempt(), previous=None)
    assert run.spent() == 3000


def test_a_refusal_is_recorded_for_the_last_and_first_hand_attempt_only(run):
    sent = run.begin()
    assert run.ledger.end(sent, PaymentState.FAILED, remark="no funds")
    assert not run.ledger.end(sent, PaymentState.FAILED)
    assert run.spent() == 0
    failed = another(run).ledger.get()
    assert (failed.state, failed.remark) == (PaymentState.FAILED, "no funds")
    again = another(run)
    second = again.begin(failed)
    assert second.state is PaymentState.SENT
    assert not run.ledger.end(sent, PaymentState.FAILED)
    assert run.ledger.get() == second
    assert run.spent() == 3000


def test_what_is_in_doubt_stays_so_until_it_is_settled(run):
    sent = run.begin()
    assert run.ledger.end(sent, PaymentState.UNKNOWN, remark="lost")
    assert not run.ledger.end(sent, PaymentState.FAILED)
    later = another(run)
    second = later.begin(later.ledger.get())
    assert (second.state, second.remark) == (PaymentState.UNKNOWN, "lost")
    assert not later.ledger.end(second, PaymentState.FAILED, remark="no funds")
    assert later.ledger.get().state is PaymentState.UNKNOWN
    assert run.spent() == 3000
    assert later.ledger.end(second, PaymentState.UNKNOWN)
    assert later.ledger.paid("inv_1", 3000)
    assert another(run).ledger.get().state is PaymentState.SETTLED
    assert run.spent() == 3000


def test_a_run_that_died_after_its_record_is_in_doubt_for_the_next_one(run):
    run.begin()
    later = another(run)
    seen = later.ledger.get()
    assert seen.in_doubt
    assert later.begin(None) is None
    assert later.begin(seen).state is PaymentState.UNKNOWN


@pytest.mark.parametrize("by", ["machine", "hand"])
def test_a_settled_order_takes_no_further_payment(run, by):
    if by == "machine":
        run.begin()
    assert run.ledger.paid("inv_1", 3000)
    later = another(run)
    for previous in (None, later.ledger.get()):
        assert later.begin(previous) is None
    assert not later.ledger.paid("inv_1", 3000)
    assert run.kinds()[-1] == "settled"
    assert run.spent() == (3000 if by == "machine" else 0)


def test_a_reservation_whose_run_died_is_freed_when_someone_else_pays(run):
    run.ledger.reserve(3000, CAP)
    assert run.spent() == 3000
    assert another(run).ledger.paid("inv_1", 3000)
    assert run.spent() == 0
    assert run.committed() == 3000


def test_a_payment_in_doubt_counts_although_the_invoice_shows_another_one(run):
    run.ledger.end(run.begin(), PaymentState.UNKNOWN)
    assert another(run).ledger.paid("inv_1", 3000)
    assert run.spent() == 3000


def test_no_payment_begins_before_the_order_or_for_another_experiment(store):
    unordered = a_book(store, key="new", experiment=None)
    assert OrderLedger(unordered).begin(an_attempt(), previous=None) is None
    with pytest.raises(ArchiveError, match="contradicts"):
        OrderLedger(unordered).begin(an_attempt(experiment_id=None), previous=None)
    assert not OrderLedger(unordered).paid("inv_1", 3000)
    run = Run(store)
    assert run.begin(experiment_id="exp_2") is None
    assert run.spent() == 0
    assert run.kinds() == []


def test_an_order_that_moved_to_an_older_experiment_is_not_paid_for_the_younger_one(run):
    seen = run.ledger.get()
    another(run).book.record(lambda _: Surplus(experiment_id="exp_1", kept="exp_0"))
    assert run.begin(seen) is None
    assert another(run).ledger.get() is None
    assert run.begin(seen, experiment_id="exp_0")


def test_once_a_payment_is_recorded_the_order_moves_no_more(run):
    run.begin()
    with pytest.raises(ArchiveError, match=r"`surplus` .*contradicts"):
        run.book.record(lambda _: Surplus(experiment_id="exp_1", kept="exp_0"))
    assert another(run).book.read().ordered.experiment_id == "exp_1"


def test_an_invoice_above_the_reservation_is_checked_and_one_below_keeps_it(run):
    budget = run.book.books.budget
    budget.reserve("k", "c", 4000, campaign_cap_cents=4000)
    run.ledger.reserve(3000, CAP.model_copy(update={"campaign_cents": 4000}))
    assert run.committed() == 4000
    with pytest.raises(BudgetExceeded) as over:
        run.ledger.reserve(4001, CAP.model_copy(update={"campaign_cents": 4000}))
    assert over.value.cap == "campaign"
    with pytest.raises(BudgetExceeded) as over:
        another(run, "k2").ledger.reserve(6001, CAP)
    assert over.value.cap == "rolling"


def test_an_attempt_that_cannot_be_recorded_does_not_leave(store, waits):
    run = Run(store)
    run.ledger.reserve(3000, CAP)
    store.fail_before_writing(4)
    with pytest.raises(ArchiveUnavailable):
        run.ledger.begin(an_attempt(), previous=None)
    assert Run(store).ledger.get() is None


def test_an_attempt_whose_record_was_written_unheard_is_in_doubt(store, waits):
    run = Run(store)
    run.ledger.reserve(3000, CAP)
    store.lose_answer(4)
    with pytest.raises(ArchiveUnavailable):
        run.ledger.begin(an_attempt(), previous=None)
    assert Run(store).ledger.get().in_doubt
    assert run.spent() == 3000


CRASHER = """
import os, sys
from prefect_assay.archive import LocalStore
from prefect_assay.orders.ledger import Books, OrderLedger
from prefect_assay.orders.payments import PaymentAttempt

ledger = OrderLedger(Books(LocalStore(sys.argv[1]), "", "org-1").open_order("c", "k"))
assert ledger.get() is None
setattr(os, sys.argv[3], lambda *args, **kwargs: os._exit(9))
ledger.begin(PaymentAttempt.model_validate_json(sys.argv[2]), previous=None)
"""


@pytest.mark.parametrize("step", ["fsync", "link"])
def test_a_crash_while_an_attempt_is_written_leaves_none(tmp_path, step):
    store = LocalStore(tmp_path)
    assert a_book(store).read().ordered
    arguments = [sys.executable, "-c", CRASHER, str(tmp_path), an_attempt().model_dump_json(), step]
    assert subprocess.run(arguments, timeout=60, check=False).returncode == 9
    run = Run(store)
    assert run.ledger.get() is None
    assert run.spent() == 0
    assert run.begin()


def test_a_damaged_log_stops_every_payment(store):
    run = Run(store)
    run.begin()
    store.objects[next(key for key in store.objects if key.endswith("k/000003.json"))] = b"{"
    fresh = Run.__new__(Run)
    fresh.book = run.book.books.open_order("c", "k")
    fresh.ledger = OrderLedger(fresh.book)
    for call in (fresh.ledger.get, fresh.begin, lambda: fresh.ledger.paid("inv_1", 3000)):
        with pytest.raises(ConfigurationError, match="cannot be read"):
            call()


def test_a_payment_of_a_caller_that_names_no_experiment_is_the_orders(run):
    run.book.record(lambda _: Confirming(amount_cents=3000))
    run.book.record(lambda _: Paying(**an_attempt(experiment_id=None).attempt()))
    run.book.record(lambda _: Settled(invoice_id="inv_1", amount_cents=3000))
    assert another(run).ledger.get().state is PaymentState.SETTLED
