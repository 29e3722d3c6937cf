"""A campaign's progress: one row per experiment and a timeline, foreign text without markup, and written only when changed."""

import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from prefect_assay.campaigns import artifacts
from prefect_assay.campaigns import progress_artifact as progress
from prefect_assay.campaigns.events import facts, sending
from prefect_assay.campaigns.progress_artifact import (
    ProgressRow,
    TimelineEntry,
    progress_markdown,
    timeline_of_log,
)
from prefect_assay.orders.ledger.campaign_log import (
    Answered,
    Looked,
    Offered,
    Over,
    Ran,
    ShownExperiment,
    Stopped,
)
from prefect_assay.orders.ledger.state import Unpaid

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
ODD = "<img src=x> | [a](javascript:x)\nnext"


def shown(status="in_queue", **fields):
    return ShownExperiment(
        experiment_id="e-1",
        experiment_code="LAB-1",
        stage="in the laboratory",
        status=status,
        results_status="none",
        **fields,
    )


def looked(days, **experiments):
    # By the service's clock, which is another one than that of the record.
    return Looked(read_at=NOW - timedelta(days=9), at=NOW + timedelta(days=days), experiments=experiments)


def test_each_experiment_has_one_row():
    rows = [
        ProgressRow(
            "LAB-1", "in the laboratory: in queue", 3, 43_800, True, "27 Nov 2026", "https://lab.example/1"
        ),
        ProgressRow("camp 2/2 pa-k", "waits for its quote", 1),
    ]
    text = progress_markdown("camp", "lab.example, live", rows, [])
    assert (
        "| [LAB-1](https://lab.example/1) | in the laboratory: in queue; results expected 27 Nov 2026 | 3 | 438.00 USD, paid |"
        in text
    )
    assert "| `camp 2/2 pa-k` | waits for its quote | 1 |  |" in text
    assert "What has happened" not in text


def test_foreign_text_is_no_markup():
    row = ProgressRow(ODD, ODD, 1, link="javascript:alert(1)")
    text = progress_markdown("camp", ODD, [row], [TimelineEntry(NOW, ODD, ODD)])
    outside_of_code = "".join(text.split("`")[::2])
    assert "<img" not in outside_of_code
    assert not re.search(r"(?<!\\)\]\(", outside_of_code)
    assert len([line for line in text.splitlines() if line.startswith("| ")]) == 4  # two heads, two rows


def test_the_timeline_has_changes_decisions_and_restarts_newest_first():
    records = [
        Ran(run="r-1", name="first", at=NOW),
        looked(1, k=shown()),
        looked(2, k=shown(expected=NOW)),
        looked(3, k=shown("in_production", problem="no results")),
        Ran(run="r-2", name="second", restarted=True, why="it was deleted", at=NOW + timedelta(days=4)),
        Answered(
            question_id="q1",
            revision=1,
            decision="approve",
            answerer="Ada",
            how="form",
            at=NOW + timedelta(days=5),
        ),
        Stopped(person="Ada", how="command", at=NOW + timedelta(days=6)),
        Over(words="1 measured", complete=True, at=NOW + timedelta(days=7)),
    ]
    texts = [entry.text for entry in timeline_of_log(records)]
    assert texts == [
        "in the laboratory: in queue",
        "in the laboratory: in production (no results)",
        "run second goes on: it was deleted",
        "question q1 answered: approve, by Ada",
        "canceled by Ada",
        "over: 1 measured",
    ]
    table = progress_markdown("c", "a", [], timeline_of_log(records)).splitlines()
    assert table[-1] == "| 28 Nov 2026 12:00 | LAB-1 | in the laboratory: in queue |"


def test_the_timeline_is_in_the_order_of_the_log_names_codes_and_repeats_no_price():
    purchase = SimpleNamespace(due="2,628.00 USD without VAT")
    offers = [Offered.model_construct(purchase=purchase, at=NOW + timedelta(hours=n)) for n in (0, 2)]
    uncoded = shown("waiting_for_materials").model_copy(update={"experiment_code": None})
    records = [offers[0], looked(1, k=uncoded), offers[1], looked(2, k=shown())]
    entries = list(timeline_of_log(records))
    assert [(one.text, one.experiment) for one in entries] == [
        ("to be ordered: 2,628.00 USD without VAT", None),
        ("in the laboratory: waiting for materials", "LAB-1"),
        ("in the laboratory: in queue", "LAB-1"),
    ]
    assert "Account: account" not in progress_markdown("c", "account lab (simulated)", [], entries)


def test_a_row_takes_the_price_from_the_ledger_and_no_date_once_it_is_done():
    ordered = SimpleNamespace(amount_cents=100, settled=object())
    row = progress.progress_row(
        "camp 1/1", 2, ordered, shown(expected=NOW), SimpleNamespace(experiment_url="u")
    )
    assert row == ProgressRow("LAB-1", "in the laboratory: in queue", 2, 100, True, "27 Nov 2026", "u")
    assert progress.progress_row("camp 1/1", 2, ordered, shown("done", expected=NOW), None).expected is None
    assert progress.progress_row("camp 1/1", 2, ordered, None, None).experiment == "camp 1/1"
    assert Unpaid.model_fields.keys() >= {"settled"}


def test_an_unchanged_artifact_is_not_made_again(monkeypatch):
    made = []

    class Client:
        def read_artifacts(self, **_):
            return made[-1:]

        def create_artifact(self, artifact):
            made.append(artifact)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(artifacts, "get_client", lambda **_: Client())
    monkeypatch.setattr(artifacts, "current_run", SimpleNamespace(id="11111111-1111-4111-8111-111111111111"))
    rows = [ProgressRow("LAB-1", "in the laboratory", 1)]
    for _ in range(2):
        progress.show_campaign_progress("camp", "account", rows, [])
    progress.show_campaign_progress("camp", "account", rows, [TimelineEntry(NOW, "done")])
    assert [artifact.key for artifact in made] == ["assay-progress-camp"] * 2


def test_a_prefect_that_fails_ends_no_run(monkeypatch):
    def unreachable(**_):
        raise OSError("unreachable")

    monkeypatch.setattr(artifacts, "get_client", unreachable)
    progress.show_campaign_progress("camp", "account", [], [])


@pytest.fixture
def sent(monkeypatch):
    taken = []
    monkeypatch.setattr(sending, "FlowRunContext", SimpleNamespace(get=object))
    monkeypatch.setattr(sending, "emit_event", lambda **event: taken.append(event) or event)
    return taken


def test_a_stage_is_an_event_of_its_own_order_when_it_has_changed(sent):
    before = {"k1": shown(), "k2": shown()}
    with sending.record_facts(None):
        sending.describe_subject(campaign_id="camp", order_key="the last order that was advanced")
        facts.report_statuses(before, {"k1": shown(problem="new"), "k2": shown("in_production")})
        facts.report_statuses({}, {"k3": ShownExperiment(stage="not ordered yet")})
    (event,) = sent
    assert event["payload"]["order_key"] == "k2"
    assert event["payload"]["campaign_id"] == "camp"
    assert event["payload"]["status"] == "in_production"


def test_an_experiment_that_the_laboratory_cancels_is_an_event_of_its_own(sent):
    with sending.record_facts(None):
        facts.report_statuses({"k1": shown()}, {"k1": shown("canceled")})
        facts.report_statuses({"k1": shown("canceled")}, {"k1": shown("canceled", problem="its invoice")})
    assert [event["event"] for event in sent] == [
        "assay.experiment.status-changed",
        "assay.experiment.canceled",
    ]
    assert {event["payload"]["order_key"] for event in sent} == {"k1"}


def test_another_run_gives_the_same_fact_the_same_id(sent):
    for _ in range(2):
        with sending.record_facts(None):
            facts.report_statuses({}, {"k1": shown()})
    assert len(sent) == 2
    assert len({event["id"] for event in sent}) == 1


def test_one_run_remembers_the_events_of_a_large_campaign(sent, monkeypatch):
    monkeypatch.setattr(sending, "flush_events", lambda: True)
    now = {f"k{n}": shown(f"stage_{n}") for n in range(2_500)}
    labels = []
    with sending.record_facts(None, keep=labels.append):
        facts.report_statuses({}, now)
    with sending.record_facts(labels[-1], keep=labels.append):
        facts.report_statuses({}, now)
    assert len(sent) == 2_500
