"""The ledgers of an account in one archive, and the log of one order: decisions that several runs make at once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from prefect_assay.errors import ArchiveError
from prefect_assay.orders.job import OrderRoute
from prefect_assay.orders.ledger import Ledgers
from prefect_assay.orders.ledger.log import Confirming, Ordered, Paying, Planned, Sending, Withdrawn
from prefect_assay.service.models.vocabulary import PaymentMethod
from support.archive.memory_store import ACCOUNT, MemoryStore, ledgers_in, make_ledger


@pytest.fixture
def store():
    return MemoryStore()


def order(experiment_id):
    """The decision to make an experiment the order."""
    return lambda state: None if state.ordered else Ordered(experiment_id=experiment_id)


def sending(attempt):
    return Sending(attempt=attempt, route=OrderRoute.QUOTED, rail=PaymentMethod.ASYNC_INVOICE)


def kinds(ledger):
    return [record.kind for record in ledger.records()]


# The archive


def test_an_archives_id_is_made_once(any_store):
    barrier = threading.Barrier(8)

    def first_use(number):
        ledgers = ledgers_in(any_store, f"org-{number % 2}")
        barrier.wait(20)
        return ledgers.archive_id

    with ThreadPoolExecutor(8) as pool:
        (only,) = set(pool.map(first_use, range(8)))
    assert ledgers_in(any_store).archive_id == only
    assert len(only) == 32


def test_a_damaged_archive_id_stops_every_order(store):
    make_ledger(store)
    store.objects["LEDGERS/ARCHIVE.json"] = b"{"
    with pytest.raises(ArchiveError, match=r"ARCHIVE\.json is damaged; restore it"):
        ledgers_in(store).open_order("c", "other").record(order("exp_1"))


def test_a_log_of_another_archive_is_refused(store):
    make_ledger(store)
    del store.objects["LEDGERS/ARCHIVE.json"]
    ledger = ledgers_in(store).open_order("c", "k")
    for call in (ledger.read, lambda: ledger.record(order("exp_2"))):
        with pytest.raises(ArchiveError, match=r"was written in another archive; nothing is ordered or paid"):
            call()


def test_a_prefix_is_another_archive(store):
    one, other = Ledgers(store, "a", ACCOUNT), Ledgers(store, "b", ACCOUNT)
    assert one.archive_id != other.archive_id
    one.open_order("c", "k").record(order("exp_1"))
    assert other.open_order("c", "k").read().count == 0


def test_a_scope_differs_by_service_organisation_and_archive(store):
    a, b = "https://a.example", "https://b.example"
    scopes = [
        ledgers_in(store).derive_scope(a),
        ledgers_in(store).derive_scope(b),
        ledgers_in(store, "org-2").derive_scope(a),
        ledgers_in(MemoryStore()).derive_scope(a),
    ]
    assert len(set(scopes)) == 4
    assert ledgers_in(store).derive_scope(a) == scopes[0]


def test_no_account_or_campaign_leads_another_one_into_its_log(store):
    pairs = [
        ("org-1", "c"),
        ("org-1", "C"),
        ("org-1", "BUDGET"),
        ("org-1", "../c"),
        ("../org-1", "c"),
        ("c", "org-1"),
    ]
    for number, (account, campaign) in enumerate(pairs):
        ledgers_in(store, account).open_order(campaign, "k").record(order(f"exp_{number}"))
    for number, (account, campaign) in enumerate(pairs):
        assert (
            ledgers_in(store, account).open_order(campaign, "k").read().ordered.experiment_id
            == f"exp_{number}"
        )


@pytest.mark.parametrize("campaign", ["c", "My Campaign", "ä/..\\x", "v001"])
def test_all_orders_are_found_for_a_report_whatever_their_campaign_is_called(store, campaign):
    make_ledger(store, campaign, "k1", "exp_1")
    make_ledger(store, campaign, "k2", "exp_2")
    ledgers_in(store).budget.reserve("k1", campaign, 5)
    ledgers_in(store, "org-2").open_order(campaign, "k1").record(order("exp_3"))
    orders = {
        (ledger.order_key, ledger.read().planned.campaign_id, ledger.read().ordered.experiment_id)
        for ledgers in Ledgers.list_all(store, "")
        for ledger in ledgers.list_orders()
    }
    assert orders == {("k1", campaign, "exp_1"), ("k2", campaign, "exp_2"), ("k1", campaign, "exp_3")}
    assert sum(b.budget.read().campaign_cents(campaign) for b in Ledgers.list_all(store, "")) == 5


# One log


def test_a_log_begins_with_its_plan_and_names_archive_and_campaign(store):
    ledger = make_ledger(store, "My Campaign", "k")
    planned = next(iter(ledger.records()))
    assert isinstance(planned, Planned)
    assert (planned.archive_id, planned.campaign_id) == (ledger.ledgers.archive_id, "My Campaign")
    assert kinds(ledger) == ["planned", "ordered"]
    assert "/k" in ledger.location


def test_a_decision_for_nothing_writes_no_more_than_the_plan(store):
    ledger = make_ledger(store, experiment=None)
    assert ledger.record(lambda _: None) is None
    assert kinds(ledger) == ["planned"]


def test_a_writer_that_was_paused_between_reading_and_writing_finds_its_number_taken(store):
    ledger, seen = make_ledger(store, experiment=None), []

    def decide(state):
        seen.append(state.ordered and state.ordered.experiment_id)
        if len(seen) == 1:  # an hour passes, and another run orders
            make_ledger(store, experiment="exp_of_another")
        return None if state.ordered else Ordered(experiment_id="exp_own")

    assert ledger.record(decide) is None
    assert (seen[0], seen[-1]) == (None, "exp_of_another")
    assert ledger.state.ordered.experiment_id == "exp_of_another"


def test_a_decision_for_nothing_is_made_on_what_the_log_says_now(store):
    """A run that read before another one withdrew must not go on as if its quote was confirmed."""
    ledger = make_ledger(store)
    confirm = lambda state: None if state.confirmed else Confirming(amount_cents=1)  # noqa: E731
    assert ledger.record(confirm)
    make_ledger(store).record(lambda _: Withdrawn(reason="canceled by another run"))
    assert ledger.record(confirm)
    assert kinds(ledger)[-3:] == ["confirming", "withdrawn", "confirming"]


def test_a_record_that_contradicts_the_log_is_not_written(store):
    ledger = make_ledger(store, experiment=None)
    with pytest.raises(ArchiveError, match="contradicts"):
        ledger.record(lambda _: Confirming(amount_cents=1))
    assert kinds(make_ledger(store)) == ["planned", "ordered"]


def test_a_contradiction_that_is_in_the_log_stops_the_order(store):
    ledger = make_ledger(store)
    again = Ordered(experiment_id="exp_2").model_dump_json().encode()
    store.objects[next(key for key in store.objects if key.endswith("k/000002.json")).replace("2.", "3.")] = (
        again
    )
    for call in (ledger.read, lambda: ledger.record(order("exp_3")), lambda: make_ledger(store)):
        with pytest.raises(ArchiveError, match=r"`ordered` .*contradicts"):
            call()


def test_no_field_of_a_payment_can_hold_a_secret():
    assert not {"credential", "signature", "token", "key"} & set(Paying.model_fields)
