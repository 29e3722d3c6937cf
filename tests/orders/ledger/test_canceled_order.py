"""A person cancels an order between any two records: no action follows, whoever is alive, until a person reopens it."""

import itertools
from datetime import UTC, datetime, timedelta

import pytest

from prefect_assay.errors import ArchiveError, OrderStopped
from prefect_assay.orders.job import OrderRoute
from prefect_assay.orders.ledger.log import (
    ACTIONS,
    Accepted,
    Approved,
    Confirming,
    Delivered,
    InDoubt,
    Invoiced,
    Named,
    NotSettled,
    Ordered,
    Paying,
    Refused,
    Sending,
    Settled,
    Surplus,
    Withdrawn,
)
from prefect_assay.service.models.vocabulary import PaymentMethod
from support.archive.memory_store import MemoryStore, an_attempt, make_ledger

SEEN = datetime(2026, 11, 27, 12, tzinfo=UTC)


def sending(attempt=1, route=OrderRoute.QUOTED):
    return Sending(attempt=attempt, route=route, rail=PaymentMethod.X402_EXACT)


def paying():
    return Paying(**an_attempt().attempt())


def settled():
    return Settled(invoice_id="inv_1", amount_cents=3000)


ORDERED = Ordered(experiment_id="exp_1")
APPROVED = Approved(amount_cents=3000, approver="rule")
DELIVERED = Delivered(experiment_code="SIM-001-001")
STORIES = {
    "self-service by machine": [
        APPROVED,
        sending(route=OrderRoute.SELF_SERVICE),
        Accepted(invoice_id="inv_1"),
        Named(experiment_id="exp_1"),
        ORDERED,
        paying(),
        settled(),
        DELIVERED,
    ],
    "quote and hosted invoice": [
        sending(),
        Named(experiment_id="exp_1"),
        ORDERED,
        APPROVED,
        Confirming(amount_cents=3000),
        Accepted(invoice_id="inv_1", experiment_id="exp_1"),
        Invoiced(invoice_id="inv_1", amount_cents=3000),
        settled(),
        DELIVERED,
    ],
    "sent three times, two experiments": [
        sending(1),
        Refused(attempt=1, reason="400"),
        sending(2),
        sending(3),
        ORDERED,
        Surplus(experiment_id="exp_2", kept="exp_1"),
        Withdrawn(reason="expired"),
        Confirming(amount_cents=3000),
        paying(),
        NotSettled(remark="no funds"),
        paying(),
        InDoubt(remark="lost"),
        paying(),
        settled(),
    ],
}
CUTS = [(name, cut) for name, story in STORIES.items() for cut in range(len(story) + 1)]


def write(ledger, record):
    return ledger.record(lambda _: record)


def kinds(store):
    return [record.kind for record in make_ledger(store, experiment=None).records()]


def actions_while_stopped(records):
    stopped, wrong = False, []
    for record in records:
        stopped = record.kind == "stopped" or (stopped and record.kind != "reopened")
        if stopped and isinstance(record, ACTIONS):
            wrong.append(record.kind)
    return wrong


@pytest.mark.parametrize(("name", "cut"), CUTS)
def test_between_any_two_records_nothing_but_facts_follows_and_after_reopening_everything(name, cut):
    store, story = MemoryStore(), STORIES[name]
    run = make_ledger(store, experiment=None)
    for record in story[:cut]:
        assert write(run, record)
    make_ledger(store, experiment=None).stop("ada", "prefect-assay cancel")
    left, refused = story[cut:], []
    facts = list(itertools.takewhile(lambda one: not isinstance(one, ACTIONS), left))
    for record in facts:
        assert write(run, record), "what only notes facts still follows"
    for record in left:
        if isinstance(record, ACTIONS):
            before = kinds(store)
            for ledger in (run, make_ledger(store, experiment=None)):
                with pytest.raises(
                    OrderStopped, match=r"order k of campaign c was canceled by ada on .*--reopen"
                ):
                    write(ledger, record)
            assert kinds(store) == before
            refused.append(record)
    assert actions_while_stopped(run.records()) == []
    make_ledger(store, experiment=None).reopen("ada")
    for record in left[len(facts) :]:
        assert write(run, record)
    assert [kind for kind in kinds(store) if kind not in {"planned", "stopped", "reopened"}] == [
        record.kind for record in story
    ]
    noted = {action for action in run.actions if run.actions}
    assert len(noted) == sum(isinstance(record, ACTIONS) for record in story)


def test_an_order_whose_log_is_empty_is_stopped_before_it_was_planned():
    store = MemoryStore()
    make_ledger(store, experiment=None).stop("ada", "prefect-assay cancel")
    assert kinds(store) == ["planned", "stopped"]
    state = make_ledger(store, experiment=None).read()
    assert (state.stopped.person, state.placed) == ("ada", False)
    with pytest.raises(OrderStopped):
        write(make_ledger(store, experiment=None), sending())
    with pytest.raises(OrderStopped):
        make_ledger(store, experiment=None).require_not_stopped()


def test_it_is_stopped_and_reopened_once():
    store = MemoryStore()
    for ledger in (make_ledger(store), make_ledger(store)):
        ledger.stop("ada", "cancel")
        ledger.stop("bob", "cancel")
    assert make_ledger(store).read().stopped.person == "ada"
    for ledger in (make_ledger(store), make_ledger(store)):
        ledger.reopen("ada")
        ledger.require_not_stopped()
    assert kinds(store) == ["planned", "ordered", "stopped", "reopened"]


def test_a_new_start_retries_what_was_refused_and_nothing_that_a_person_has_stopped():
    store = MemoryStore()
    make_ledger(store, experiment=None).allow_retry("a new start")
    assert store.objects == {}
    write(make_ledger(store, experiment=None), Withdrawn(reason="refused"))
    make_ledger(store, experiment=None).allow_retry("a new start")
    assert not make_ledger(store, experiment=None).read().withdrawn
    write(make_ledger(store, experiment=None), Withdrawn(reason="refused"))
    make_ledger(store, experiment=None).stop("ada", "cancel")
    make_ledger(store, experiment=None).allow_retry("a new start")
    state = make_ledger(store, experiment=None).read()
    assert (state.stopped.person, state.withdrawn) == ("ada", True)
    make_ledger(store, experiment=None).reopen("ada")
    state = make_ledger(store, experiment=None).read()
    assert (state.stopped, state.withdrawn) == (None, False)
    assert kinds(store)[-2:] == ["stopped", "reopened"]


def test_an_order_with_an_experiment_is_not_retried():
    ledger = make_ledger()
    write(ledger, Withdrawn(reason="expired"))
    ledger.allow_retry("a new start")
    assert (ledger.read().withdrawn, [record.kind for record in ledger.records()][-1]) == (True, "withdrawn")


@pytest.mark.parametrize("record", [Confirming(amount_cents=3000), paying()])
def test_a_stop_that_comes_while_an_action_is_written_wins_or_comes_after_it(record):
    """Whichever the store puts first: the run meets `stopped`, or its action was before."""
    store = MemoryStore()
    run = make_ledger(store)
    run.read()

    def stop_first(key):
        if key.endswith("/k/000003.json"):
            store.before_put = lambda _: None
            make_ledger(store).stop("ada", "cancel")

    store.before_put = stop_first
    with pytest.raises(OrderStopped):
        write(run, record)
    assert kinds(store) == ["planned", "ordered", "stopped"]
    assert run.actions == ()
    assert run.ledgers.budget.read().reservations == {}, "an action that did not happen is not noted either"


def test_a_stop_that_the_store_promised_and_did_not_write_is_written_again(waits, monkeypatch):
    store = MemoryStore()
    ledger = make_ledger(store)
    put, lost = store.put_if_absent, ["/k/000003.json"]

    def promise(key, data, content_type, *, sha256=None):
        if lost and key.endswith(lost[0]):
            return bool(lost.pop())
        return put(key, data, content_type, sha256=sha256)

    monkeypatch.setattr(store, "put_if_absent", promise)
    ledger.stop("ada", "prefect-assay cancel")
    assert make_ledger(store).read().stopped is not None


def test_a_stopped_log_with_an_action_after_it_is_damaged():
    ledger = make_ledger()
    ledger.stop("ada", "cancel")
    for record in (Confirming(amount_cents=1), paying()):
        with pytest.raises(ArchiveError, match=rf"`{record.kind}` .*contradicts"):
            ledger.state.next(record)


# --- partial results ---


def test_partial_results_are_seen_once():
    store = MemoryStore()
    make_ledger(store).see_partial(SEEN)
    make_ledger(store).see_partial(SEEN + timedelta(hours=1))
    assert make_ledger(store).read().partial.seen == SEEN
    assert kinds(store) == ["planned", "ordered", "partial"]


def test_partial_results_are_those_of_the_orders_experiment():
    store = MemoryStore()
    unordered = make_ledger(store, experiment=None)
    unordered.see_partial(SEEN)
    assert kinds(store) == ["planned"]
    ledger = make_ledger(store)
    ledger.see_partial(SEEN)
    write(ledger, Surplus(experiment_id="exp_1", kept="exp_0"))
    assert make_ledger(store).read().partial is None
    make_ledger(store).see_partial(SEEN + timedelta(hours=1))
    assert make_ledger(store).read().partial.seen == SEEN + timedelta(hours=1)


# --- any story, with several writers ---
