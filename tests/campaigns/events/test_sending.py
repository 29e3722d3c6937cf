"""A fact is sent once per run, whatever happens in between, and nothing that fails here reaches the run."""

import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from prefect_assay.campaigns.events import (
    EVENTS_LABEL,
    describe_subject,
    emit_fact,
    is_news,
    record_facts,
    sending,
)
from prefect_assay.campaigns.events.kinds import ExperimentPaid, RoundCompleted, StatusChanged

NOW = datetime.now(UTC)


def status(name, experiment="e-1"):
    return StatusChanged(experiment_id=experiment, status=name, results_status="none")


@pytest.fixture
def sent(monkeypatch):
    """What reaches Prefect, within a flow run whose events leave the process at once."""
    taken = []
    monkeypatch.setattr(sending, "FlowRunContext", SimpleNamespace(get=object))
    monkeypatch.setattr(sending, "flush_events", lambda: True)
    monkeypatch.setattr(sending, "emit_event", lambda **event: taken.append(event) or event)
    return taken


def execution(label, *facts, began=None, **options):
    """One execution of a run: its label before gives its label after."""
    kept = []
    with record_facts(label, began=began, keep=kept.append):
        for fact in facts:
            emit_fact(fact, **options)
    return kept[0] if kept else label


def test_a_run_that_starts_again_sends_what_is_new(sent):
    label = execution(None, status("in_queue"), status("in_queue"))
    label = execution(label, status("in_queue"), status("in_production"))
    label = execution(label, status("in_queue"), status("in_production"))
    assert [event["payload"]["status"] for event in sent] == ["in_queue", "in_production"]
    assert len(label.split()) == 2


def test_a_killed_run_sends_the_same_ids(sent, monkeypatch):
    monkeypatch.setattr(sending, "flush_events", lambda: False)
    assert execution(None, status("in_queue")) is None
    execution(None, status("in_queue"))
    assert len({event["id"] for event in sent}) == 1


def test_an_event_has_resource_labels_campaign_and_order(sent):
    with record_facts(None):
        describe_subject(campaign_id="c-1", order_key="k-1")
        emit_fact(ExperimentPaid(experiment_id="e-1", experiment_code="LAB-1", payment_method="x402-exact"))
    (event,) = sent
    assert event["resource"] == {
        "prefect.resource.id": "assay.experiment.e-1",
        "prefect.resource.name": "LAB-1",
        "assay.payment-method": "x402-exact",
    }
    assert [(r["prefect.resource.role"], r["prefect.resource.id"]) for r in event["related"]] == [
        ("campaign", "assay.campaign.c-1"),
        ("order", "assay.order.k-1"),
    ]
    assert event["payload"] == {
        "campaign_id": "c-1",
        "order_key": "k-1",
        "experiment_id": "e-1",
        "experiment_code": "LAB-1",
        "payment_method": "x402-exact",
    }


def test_what_is_older_than_the_run_is_remembered_and_not_sent(sent):
    with record_facts(None, began=NOW):
        assert (is_news(NOW - timedelta(seconds=1)), is_news(NOW), is_news(None)) == (False, True, True)
    label = execution(None, status("done"), news=False)
    assert execution(label, status("done")) == label
    assert sent == []


def test_outside_of_a_flow_run_nothing_is_sent(sent, monkeypatch):
    monkeypatch.setattr(sending, "FlowRunContext", SimpleNamespace(get=lambda: None))
    emit_fact(status("done"))
    assert sent == []


def test_a_failure_of_prefect_reaches_no_run(sent, monkeypatch):
    def broken(**_):
        raise RuntimeError("no room")

    def cannot_store(_label):
        raise RuntimeError("no server")

    monkeypatch.setattr(sending, "emit_event", broken)
    assert execution(None, status("in_queue")) is None
    monkeypatch.setattr(sending, "emit_event", lambda **event: sent.append(event) or event)
    with record_facts(None, keep=cannot_store):
        emit_fact(status("in_queue"))
    assert len(sent) == 1


def test_an_error_of_the_run_passes_and_its_events_are_remembered(sent):
    kept = []

    def fail():
        with record_facts(None, keep=kept.append):
            emit_fact(status("in_queue"))
            raise ValueError("its own")

    with pytest.raises(ValueError, match="its own"):
        fail()


def test_waiting_for_the_buffer_ends(monkeypatch):
    stuck = SimpleNamespace(wait_until_empty=lambda: time.sleep(5))
    monkeypatch.setattr(sending, "EventsWorker", SimpleNamespace(instance=lambda: stuck))
    began = time.monotonic()
    assert sending.flush_events(0.05) is False
    assert time.monotonic() - began < 4


def test_the_label_stays_short(sent):
    rounds = [RoundCompleted(loop_id="l", round=f"r-{n}") for n in range(10_000)]
    assert len(execution("", *rounds)) < 50_000
    assert EVENTS_LABEL == "assay.events"  # suspended runs have it
