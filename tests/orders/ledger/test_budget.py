"""The budget: caps are filled to the cent and never passed, by however many runs, over however many records."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from math import ceil, log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefect_assay.errors import ArchiveUnavailable, BudgetExceeded
from prefect_assay.orders.ledger.budget import EVERY
from prefect_assay.orders.payments.interfaces import RollingCap
from support.archive.memory_store import MemoryStore, ledgers_in
from support.crash.races import SINCE, a_cap, claims

LARGE = 10**9
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def rolling(cents, since=SINCE, campaign=None):
    return RollingCap(max_cents=cents, since=since, at=since + timedelta(days=30), campaign_cents=campaign)


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def budget(store):
    return ledgers_in(store).budget


def sums(store, since=SINCE, campaign="c"):
    """As a reader sees it that has read nothing before."""
    state = ledgers_in(store).budget.read()
    return state.campaign_cents(campaign), state.paid_cents(since)


# Racing


@pytest.mark.parametrize("cap", ["rolling", "campaign"])
def test_ten_threads_fill_a_cap_to_the_cent_and_never_pass_it(any_store, cap):
    limits = rolling(70_003 if cap == "rolling" else LARGE, campaign=70_003 if cap == "campaign" else None)
    assert sum(claims(any_store, limits, [(10_000, "c")] * 10)) == 70_000
    assert claims(any_store, limits, [(4, "c")], "over") == [0]
    assert claims(any_store, limits, [(3, "c")], "fits") == [3]
    assert sums(any_store) == (70_003, 70_003)
    other = claims(any_store, limits, [(10_000, "another")], "other")
    assert other == ([0] if cap == "rolling" else [10_000])


# One reservation


def test_the_same_order_counts_once_and_a_higher_amount_takes_the_place_of_the_lower(store, budget):
    budget.reserve("a", "c", 0, campaign_cap_cents=100)
    budget.reserve("a", "c", 60, campaign_cap_cents=100)
    records = len(store.objects)
    budget.reserve("a", "c", 60, campaign_cap_cents=100)
    ledgers_in(store).budget.reserve("a", "c", 60, campaign_cap_cents=100)
    assert len(store.objects) == records
    with pytest.raises(BudgetExceeded, match=r"order b of 0.41 USD .* campaign c: 0.60 USD of 1.00 USD"):
        budget.reserve("b", "c", 41, campaign_cap_cents=100)
    assert len(store.objects) == records
    assert sums(store) == (60, 0)
    budget.reserve("b", "c", 41, campaign_cap_cents=101)


def test_a_higher_amount_is_compared_with_the_cap_without_the_one_that_it_replaces(store, budget):
    budget.reserve("a", "c", 60, campaign_cap_cents=100)
    budget.reserve("a", "c", 100, campaign_cap_cents=100)
    assert sums(store) == (100, 0)


def test_the_message_names_the_rolling_cap_with_its_figures(budget):
    cap = rolling(10_000, since=NOW - timedelta(days=30))
    for number in range(3):
        budget.reserve(f"order-{number}", "c", 3000, rolling=cap)
    with pytest.raises(
        BudgetExceeded,
        match=r"order-9 of 30.00 USD would pass rolling_usd .* since 2026-01-30: 90.00 USD of 100.00 USD",
    ) as over:
        budget.reserve("order-9", "c", 3000, rolling=cap)
    assert (over.value.cap, over.value.total_cents, over.value.cap_cents) == ("rolling", 12_000, 10_000)
    budget.reserve("order-8", "c", 1000, rolling=cap)


def test_what_is_released_counts_no_more(store, budget):
    budget.reserve("a", "c", 60, rolling=rolling(100))
    budget.release("a", payment_only=True)
    assert sums(store) == (60, 0)
    budget.release("a")
    assert sums(store) == (0, 0)
    records = len(store.objects)
    budget.release("a", payment_only=True)
    budget.release("never reserved")
    assert len(store.objects) == records
    budget.reserve("a", "c", 100, campaign_cap_cents=100, rolling=rolling(100))
    assert sums(store) == (100, 100)


def test_a_run_releases_its_own_part_and_the_payment_counts_while_another_run_makes_it(store, budget):
    budget.reserve("a", "c", 60, rolling=rolling(100), run="1")
    budget.reserve("a", "c", 60, rolling=rolling(100), run="2")
    for _ in range(2):
        budget.release("a", payment_only=True, run="1")
    budget.release("a", payment_only=True, run="of nobody")
    assert sums(store) == (60, 60)
    budget.release("a", payment_only=True, run="2")
    assert sums(store) == (60, 0)


def test_a_raised_cap_outlives_checkpoints_while_nothing_is_reserved_yet(store, budget):
    budget.raise_cap("c", 200, "a person")
    for number in range(EVERY):
        budget.reserve(f"other-{number}", "another", 1)
    budget.reserve("quoted", "c", 0)
    ledgers_in(store).budget.reserve("a", "c", 200, campaign_cap_cents=100)


# The window


@pytest.mark.parametrize(("days", "counts"), [(29, True), (31, False)])
def test_what_lies_before_the_window_no_longer_counts(store, budget, days, counts):
    budget.reserve("old", "c", 9000, rolling=a_cap(10_000, now=NOW))
    later = a_cap(10_000, now=NOW + timedelta(days=days))
    if counts:
        with pytest.raises(BudgetExceeded):
            budget.reserve("new", "c", 10_000, rolling=later)
    else:
        budget.reserve("new", "c", 10_000, rolling=later)
        assert sums(store, later.since) == (19_000, 10_000)


def test_a_payment_that_is_made_again_later_counts_from_then_on(store, budget):
    later = a_cap(10_000, now=NOW + timedelta(days=40))
    for cap in (a_cap(10_000, now=NOW), later):
        budget.reserve("a", "c", 9000, rolling=cap)
    with pytest.raises(BudgetExceeded):
        budget.reserve("b", "c", 1001, rolling=later)
    assert sums(store, later.since)[1] == 9000


def test_a_payment_that_is_made_again_after_the_window_is_checked_again(budget):
    budget.reserve("a", "c", 9000, rolling=a_cap(10_000, now=NOW))
    later = a_cap(10_000, now=NOW + timedelta(days=40))
    budget.reserve("b", "c", 9000, rolling=later)
    with pytest.raises(BudgetExceeded):
        budget.reserve("a", "c", 9000, rolling=later)


def test_an_earlier_time_does_not_move_a_payment_out_of_the_window(store, budget):
    budget.reserve("a", "c", 9000, rolling=a_cap(10_000, now=NOW))
    budget.reserve("a", "c", 9000, rolling=a_cap(10_000, now=NOW - timedelta(days=300)))
    assert sums(store, NOW - timedelta(days=30))[1] == 9000


def test_checkpoints_leave_nothing_out_for_its_age(store, budget):
    """Whether it is old is a matter of clocks, and the machine that writes may have a wrong one."""
    budget.reserve("paid", "c", 9000, rolling=a_cap(10_000, now=NOW - timedelta(days=5000)))
    budget.reserve("ordered", "c", 10)
    budget.reserve("quoted", "c", 0)  # a quote is asked for, whose action is noted later
    for number in range(2 * EVERY):
        budget.reserve(f"fill-{number}", "another", 1)
    assert sums(store, NOW - timedelta(days=5001)) == (9010, 9000)
    assert "quoted" in ledgers_in(store).budget.read().reservations


def test_a_time_that_was_ahead_is_corrected_by_what_was_read_before_the_clock_was_confirmed(store, budget):
    budget.reserve("a", "c", 9000, rolling=a_cap(10_000, now=NOW + timedelta(days=400)))
    known = budget.read().reservations.values()
    budget.reserve("b", "c", 1000, rolling=a_cap(10_000, now=NOW + timedelta(days=400)))
    budget.redate_payments(known, NOW)
    dates = {r.order_key: r.paid_at for r in ledgers_in(store).budget.read().reservations.values()}
    assert dates == {"a": NOW, "b": NOW + timedelta(days=400)}


# Checkpoints

operations = st.lists(
    st.tuples(
        st.sampled_from(["reserve", "reserve", "reserve", "pay", "pay", "release", "unpay", "raise"]),
        st.integers(0, 30),  # order; its campaign follows from it
        st.integers(0, 10**13),
        st.integers(0, 3),  # which of the runs does it
    ),
    min_size=130,
    max_size=180,
)


@settings(max_examples=40)
@given(history=operations, window=st.integers(10**13, 4 * 10**13), campaign=st.integers(10**13, 4 * 10**13))
def test_sums_are_those_of_integers_over_any_history_and_a_refusal_leaves_no_trace(history, window, campaign):
    """Four runs that have read at different times, against sums of plain integers."""
    store = MemoryStore()
    runs = [ledgers_in(store).budget for _ in range(4)]
    plain = Plain(campaign, window)
    for kind, order, cents, number in history:
        budget, name = runs[number], Plain.campaign_of(order)
        if kind == "raise":
            budget.raise_cap(name, cents, "x")
            plain.caps[name] = max(cents, plain.caps.get(name, 0))
        elif kind in {"release", "unpay"}:
            budget.release(str(order), payment_only=kind == "unpay")
            plain.release(order, payment_only=kind == "unpay")
        else:
            limit = rolling(window) if kind == "pay" else None
            try:
                budget.reserve(str(order), name, cents, campaign_cap_cents=campaign, rolling=limit)
                reserved = True
            except BudgetExceeded:
                reserved = False
            assert reserved is plain.reserve(order, cents, pays=kind == "pay")
        runs[3] = ledgers_in(store).budget  # a run that has read nothing yet
    for reader in runs:
        state = reader.read()
        assert state.paid_cents(SINCE) == plain.machine()
        for name in ("c0", "c1", "c2"):
            assert state.campaign_cents(name) == plain.committed(name)
        assert state.caps == {name: cents for name, cents in plain.caps.items() if cents}


class Plain:
    """The sums of plain integers."""

    def __init__(self, campaign_cap, window_cap):
        self.campaign_cap, self.window_cap = campaign_cap, window_cap
        self.counted, self.paid, self.caps = {}, set(), {}

    @staticmethod
    def campaign_of(order):
        return f"c{order % 3}"

    def committed(self, name):
        return sum(cents for order, cents in self.counted.items() if self.campaign_of(order) == name)

    def machine(self):
        return sum(self.counted[order] for order in self.paid)

    def release(self, order, *, payment_only):
        self.paid.discard(order)
        if not payment_only:
            self.counted.pop(order, None)

    def reserve(self, order, cents, *, pays):
        name, had = self.campaign_of(order), self.counted.get(order, 0)
        cap = max(self.campaign_cap, self.caps.get(name, 0))
        if cents > had and self.committed(name) - had + cents > cap:
            return False
        before = had if order in self.paid else 0
        if pays and cents > before and self.machine() - before + cents > self.window_cap:
            return False
        self.counted[order] = cents
        if pays:
            self.paid.add(order)
        return True


@pytest.mark.parametrize("records", [0, 1, 31, 32, 33, 100, 1000])
def test_a_fresh_reader_needs_a_logarithm_of_calls_and_what_follows_a_checkpoint(store, budget, records):
    for number in range(records):
        budget.reserve(f"order-{number}", "c", 1)
    assert sum(key.endswith(".json") for key in store.objects) >= records
    store.calls.clear()
    assert sums(store) == (records, 0)
    checkpoints = max(1, records / (EVERY - 1))
    assert sum(store.calls.values()) <= 2 * ceil(log2(checkpoints) + 1) + EVERY + 3
    store.calls.clear()
    budget.reserve("one more", "c", 1)
    assert sum(store.calls.values()) <= 9


def test_every_32nd_record_is_a_checkpoint_however_many_runs_write(store):
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(
                lambda n: [ledgers_in(store).budget.reserve(f"{n}-{k}", "c", 1) for k in range(20)], range(8)
            )
        )
    kinds = {int(key[-11:-5]): b'"kind":"checkpoint"' in body for key, body in store.objects.items()}
    assert all(is_checkpoint == (n % EVERY == 0) for n, is_checkpoint in kinds.items())
    assert sums(store) == (160, 0)


# A store with faults


def test_lost_answers_and_lost_requests_neither_lose_nor_double_a_reservation(store, budget, waits):
    for number in range(40):
        (store.lose_answer if number % 2 else store.fail_before_writing)()
        budget.reserve(f"order-{number}", "c", 10)
    assert sums(store) == (400, 0)


def test_a_store_that_is_away_reserves_nothing(store, budget, waits):
    budget.reserve("a", "c", 10)
    store.fail_before_writing(4)
    with pytest.raises(ArchiveUnavailable):
        budget.reserve("b", "c", 10)
    assert sums(store) == (10, 0)
    budget.reserve("b", "c", 10)
    assert sums(store) == (20, 0)
