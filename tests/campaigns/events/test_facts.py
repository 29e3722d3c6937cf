"""The events of a campaign's report and of the rounds of a loop."""

from types import SimpleNamespace

import pytest

from prefect_assay.archive.archived import ArchiveRecord
from prefect_assay.campaigns.events import facts, record_facts, sending
from prefect_assay.campaigns.flow_results import RoundReport


@pytest.fixture
def sent(monkeypatch):
    """What reaches Prefect."""
    taken = []
    monkeypatch.setattr(sending, "FlowRunContext", SimpleNamespace(get=object))
    monkeypatch.setattr(sending, "flush_events", lambda: True)
    monkeypatch.setattr(sending, "emit_event", lambda **event: taken.append(event) or event)
    return taken


def report(*, unchanged=False):
    return ArchiveRecord(
        location="s3://assay/c-1/REPORT/v001",
        experiment_code="REPORT",
        campaign_id="c-1",
        version=1,
        manifest_sha256="sha-REPORT",
        files=2,
        total_bytes=9,
        unchanged=unchanged,
    )


def test_curves_to_look_at_are_counted_and_name_their_designs(sent):
    for news in (True, False):
        facts.report_curve_reviews(report(), ["a", "a", "b"], news=news)
    assert {event["event"] for event in sent} == {"assay.curve.review"}
    assert len({event["id"] for event in sent}) == 1
    assert (sent[0]["payload"]["curves"], sent[0]["payload"]["designs"]) == (3, ["a", "b"])


def test_a_report_without_such_curves_is_no_news(sent):
    facts.report_curve_reviews(report(), [], news=True)
    facts.report_curve_reviews(None, ["a"], news=True)
    assert sent == []


def test_what_an_earlier_run_has_archived_is_no_news(sent):
    with record_facts(None):
        facts.report_curve_reviews(report(unchanged=True), ["a"], news=False)
    assert sent == []


def test_each_round_has_its_event(sent):
    for name in ("r1", "r2"):
        made = RoundReport(name=name, campaign_id=f"loop-{name}", table="/a/results.csv", best_kd_M=1e-9)
        facts.round_completed("loop", made, news=True)
    failed = RoundReport(name="r3", campaign_id="loop-r3", table=None, best_kd_M=None, problem="canceled")
    facts.round_completed("loop", failed, news=True)
    assert [event["event"] for event in sent] == ["assay.round.completed"] * 3
    assert [event["payload"]["round"] for event in sent] == ["r1", "r2", "r3"]
