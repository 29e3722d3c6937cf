"""Each fact is one event on a real server, fired by real runs, also after kills and resumes."""

from datetime import UTC, datetime, timedelta

import pytest

from prefect_assay.approvals.questions import answer_expired
from prefect_assay.blocks import SpendingPolicy
from prefect_assay.client.http.dates import time_at
from prefect_assay.events import EVENTS_LABEL, flush, sending
from prefect_assay.flows import first_look
from prefect_assay.models.vocabulary import AFTER_MATERIALS
from prefect_assay.tasks import read
from support.runs.events import assets_of, names, of_campaign
from support.runs.world import UNPRICED, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

BINDER = "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR"


def test_a_paid_experiment_reports_each_fact_once(world):
    run = world.experiment("events-once", BINDER)
    world.asleep(run)

    def ordered():
        found = names(of_campaign("events-once"))
        return found if found["assay.experiment.paid"] else None

    eventually(ordered, seconds=10, what="the events of the suspended run")
    world.advance(days=16)
    world.until(run, "Completed", seconds=90)

    def done():
        found = of_campaign("events-once")
        return found if names(found)["assay.experiment.results-ready"] else None

    events = eventually(done, seconds=10, what="the events of the finished run")
    assert names(events) == {
        "assay.estimate.completed": 1,
        "assay.experiment.ordered": 1,
        "assay.experiment.invoiced": 1,
        "assay.experiment.paid": 1,
        "assay.experiment.stage-changed": 2,
        "assay.experiment.archived": 1,
        "assay.experiment.results-ready": 1,
    }
    assert len({event.id for event in events}) == len(events)
    deployment = f"prefect.deployment.{world.run(run).deployment_id}"
    for event in events:
        roles = event.roles()
        assert roles["flow-run"] == f"prefect.flow-run.{run.id}"
        assert (roles["deployment"], roles["campaign"]) == (deployment, "assay.campaign.events-once")


def test_questions_and_kills_are_no_second_events(world, held, monkeypatch):
    """Executed step by step. A run that is killed before its label is written sends its events again."""
    policy = SpendingPolicy(
        per_experiment_cents=100,
        per_campaign_cents=5_000_000,
        rolling_cents=50_000_000,
        machine_payments=True,
    )
    policy.save("events-cap", overwrite=True)
    run = held.experiment("events-asked", policy=policy)
    killed = [True]
    flush = sending.flush
    monkeypatch.setattr(sending, "flush", lambda: flush() and not killed[0])
    held.execute(run)
    held.answer(run, decision="approve")
    assert EVENTS_LABEL not in world.run(run).labels
    for killed[0] in (True, False, False):
        held.wake(run)
    assert world.run(run).labels[EVENTS_LABEL]
    flush()
    expected = {
        "assay.estimate.completed": 1,
        "assay.budget.reached": 1,
        "assay.approval.requested": 1,
        "assay.approval.answered": 1,
        "assay.experiment.ordered": 1,
        "assay.experiment.invoiced": 1,
        "assay.experiment.paid": 1,
        "assay.experiment.stage-changed": 1,
    }
    eventually(
        lambda: names(of_campaign("events-asked")) == expected,
        seconds=20,
        what=f"{expected}; there are {names(of_campaign('events-asked'))}",
    )


def twice(world, held, run):
    """A wake with news, and one more that finds the same facts."""
    for _ in range(2):
        if held.state(run).is_final():
            return
        held.wake(run)


def test_quotes_preliminary_results_and_bad_ends_are_one_event_each(world, held, monkeypatch):
    lab = world.stack.lab
    policy = world.policy.model_copy(update={"per_experiment_cents": 100, "approval_hours": 1})
    policy.save("events-expires", overwrite=True)
    quoted = held.experiment("events-quoted", target=UNPRICED)
    partial, late, gone = (held.experiment(f"events-{name}") for name in ("partial", "late", "gone"))
    expired = held.experiment("events-expired", policy=policy)
    for run in (quoted, partial, late, gone, expired):
        assert held.execute(run).name == "Suspended"
    (order,) = world.orders("events-gone")
    lab.event("force_status", order.id, status="canceled")
    twice(world, held, gone)
    assert answer_expired(world.api, [world.run(expired)], datetime.now(UTC) + timedelta(hours=2))
    assert held.execute(expired).name == "ApprovalExpired"

    world.advance(days=2)
    twice(world, held, quoted)
    (order,) = world.orders("events-partial")
    for _ in range(9):
        if world.service.experiment(order.id).status in AFTER_MATERIALS:
            break
        world.advance(days=1)
    lab.event("partial_results", order.id)
    twice(world, held, partial)

    def read_later_clock(client):
        """The service's clock, beyond the deadline."""
        return time_at(client) + timedelta(days=400)

    with monkeypatch.context() as patch:
        for module in (first_look, read):
            patch.setattr(module, "time_at", read_later_clock)
        twice(world, held, late)
    world.advance(days=16)
    twice(world, held, partial)

    flush()
    expected = {
        "events-quoted": {"assay.experiment.quoted": 1, "assay.experiment.paid": 1},
        "events-partial": {
            "assay.experiment.partial-results": 1,
            "assay.experiment.archived": 2,
            "assay.experiment.results-ready": 1,
        },
        "events-late": {"assay.experiment.overdue": 1, "assay.experiment.results-ready": 0},
        "events-gone": {"assay.experiment.canceled": 1, "assay.experiment.results-ready": 0},
        "events-expired": {
            "assay.approval.requested": 1,
            "assay.approval.expired": 1,
            "assay.approval.answered": 0,
            "assay.experiment.ordered": 0,
        },
    }

    def seen():
        return {
            campaign: {name: names(of_campaign(campaign))[name] for name in wanted}
            for campaign, wanted in expected.items()
        }

    eventually(lambda: seen() == expected, seconds=20, what=f"{expected}; there are {seen()}")
    (overdue,) = (e for e in of_campaign("events-late") if e.event == "assay.experiment.overdue")
    assert overdue.payload["deadline_days"] == 45
    assert overdue.resource["prefect.resource.id"] == f"assay.experiment.{world.orders('events-late')[0].id}"
    assets = assets_of("events-partial")
    assert len({event.payload["version"] for event in assets}) == len(assets) == 2
    assert len({event.resource["prefect.resource.id"] for event in assets}) == 1
