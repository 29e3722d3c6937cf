"""What a sweep costs and finds, on a real server and lab; its runs are only held there, nobody executes them."""

import sys
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import uuid4

import pytest
from prefect.client.orchestration import get_client
from prefect.events.schemas.events import Event
from prefect.exceptions import ObjectNotFound
from prefect.logging import disable_run_logger
from prefect.states import Completed, Crashed, Running, Scheduled

from prefect_assay.blocks import AssayCredentials
from prefect_assay.flows import sweep
from prefect_assay.flows.sweep import _Sweep
from prefect_assay.runs.block_references import as_parameter
from prefect_assay.runs.heartbeats import last_heartbeat, mark_missing_heartbeats_crashed
from prefect_assay.runs.queries import read_run_pages, read_runs, suspended_filter
from prefect_assay.runs.tags import ASKS_TAG, GROUP_TAG, RETRY_TAG, WAITS_TAG, set_tag
from prefect_assay.sweeping import progress
from prefect_assay.sweeping.stuck_runs import find_stuck_runs
from prefect_assay.sweeping.watermarks import SweepState, as_text
from support.counting import counted_requests
from support.runs.held import DESIGN
from support.runs.suspended import suspend_many
from support.runs.world import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(120)]

FEED_ONLY = 10_000  # minutes until the next full check


@pytest.fixture
def asleep(world, held):
    """Runs that wait for experiments of the lab, behind a credentials block of their own."""

    def make(name, count, *, kind="results", **changes):
        name += uuid4().hex[:6]
        lab = world.stack.lab.seed(name)
        block = AssayCredentials(base_url=lab.base_url, token=lab.token)
        block.save(f"sweep-{name}", overwrite=True)
        ids = lab.fill(count, stage="ordered", sequences=1)
        spec = {"experiment_type": "thermostability", "sequences": {"d": {"aa_string": DESIGN}}}
        blocks = {"policy": as_parameter(world.policy), "archive": as_parameter(world.archive)}
        known = {
            "spec": spec,
            "campaign_id": name,
            "payment_method": "x402-exact",
        }  # paid: no update is its payment
        parameters = {"credentials": as_parameter(block)} | known | blocks | changes
        deployment = world.api.read_deployment_by_name(f"experiment/{held.name}")
        runs = list(suspend_many(world.api, deployment.id, ids, parameters, kind=kind))
        made.extend(runs)
        return lab, runs

    made = []
    yield make
    for run in made:  # the installation is shared: no later sweep may find them
        with suppress(ObjectNotFound):
            world.api.delete_flow_run(run.id)


def mark_of(world, run):
    return SweepState.read(world.api).watermark(as_text(run.parameters["credentials"]["$ref"]))


def swept_at(moment, minutes):
    """One sweep as if it were that time; without its flow run."""
    with get_client(sync_client=True) as client, disable_run_logger():
        return _Sweep(client, SweepState.read(client), moment, minutes).run()


def test_a_sweep_without_news_makes_fewer_than_twenty_requests(world, asleep):
    _, runs = asleep("idle", 20)
    sweep(full_check_minutes=0)
    for minutes in (15, 30, 45):  # until nothing is news any more, and nobody has begun lately
        swept_at(datetime.now(UTC) + timedelta(minutes=minutes), FEED_ONLY)
    with counted_requests() as made:
        report = swept_at(datetime.now(UTC) + timedelta(minutes=50), FEED_ONLY)
    assert report.suspended_runs >= 20
    assert report.woken == ()
    tokens = len(SweepState.read(world.api).watermarks())  # those of other tests, too
    asking = len(read_runs(world.api, suspended_filter(tags=[ASKS_TAG])))  # of other tests: their invoices
    own = runs[0].parameters["credentials"]["$ref"]["block_document_id"]
    blocks = {
        line for line in made if "/block_" in line and not line.endswith(("filter", own))
    }  # of other tests
    problems = sum(
        "assay_problem_" in line for line in made
    )  # of other tests: made unless it is there, then kept
    assert len(made) <= 15 + 2 * tokens + 2 * asking + 2 * problems + len(blocks), "\n".join(made)
    assert mark_of(world, runs[0]).full_check is not None


def test_a_new_block_is_found_by_the_next_sweep_and_its_news_wake_the_run(world, asleep):
    sweep(full_check_minutes=0)
    lab, (run,) = asleep("newblock", 1)
    report = sweep(full_check_minutes=FEED_ONLY)
    assert mark_of(world, run).read
    assert report.woken == ()
    lab.advance(days=16)
    assert sweep(full_check_minutes=FEED_ONLY).woken == (str(run.id),)
    assert world.run(run).state.name == "Resuming"


@pytest.mark.parametrize("status", [503, 403])
@pytest.mark.parametrize("paths", [["updates"], ["updates", "experiments"]], ids=["feed", "feed and list"])
def test_neither_feed_nor_list_is_needed_to_wake_who_may_go_on(world, asleep, status, paths):
    lab, runs = asleep("blind", 2)
    sweep(full_check_minutes=0)
    lab.advance(days=16)
    with ExitStack() as faults:
        for path in paths:
            fault = {"method": "GET", "path": f"/api/v1/{path}", "status": status, "count": 1_000}
            faults.enter_context(world.stack.lab.fault("status", **fault))
        report = sweep(full_check_minutes=0)
    assert {str(run.id) for run in runs} <= set(report.woken)
    mine = [line for line in report.problems if mark_of(world, runs[0]).name in line]
    assert mine
    assert all(run.name in line for line in mine for run in runs)


def test_updates_that_let_nobody_go_on_wake_nobody(world, asleep):
    lab, (run,) = asleep("smallnews", 1)
    sweep(full_check_minutes=0)
    lab.advance(days=2)
    report = sweep(full_check_minutes=FEED_ONLY)
    assert report.updates_seen > 0
    assert report.woken == ()
    lab.advance(days=16)
    assert sweep(full_check_minutes=FEED_ONLY).woken == (str(run.id),)


def test_a_week_of_updates_is_caught_up_with_also_after_a_sweep_that_died(world, asleep, monkeypatch):
    """Hundreds of updates over many pages, while the receiver was down; the first sweep dies in the middle."""
    lab, runs = asleep("week", 24)
    sweep(full_check_minutes=0)
    lab.advance(days=16)
    resume, resumed = progress.resume, []

    def dies(client, run_id):
        if len(resumed) == 8:
            raise KeyboardInterrupt
        resumed.append(str(run_id))
        return resume(client, run_id)

    monkeypatch.setattr(progress, "resume", dies)
    with pytest.raises(KeyboardInterrupt):
        sweep(full_check_minutes=FEED_ONLY)
    monkeypatch.setattr(progress, "resume", resume)
    report = sweep(full_check_minutes=FEED_ONLY)
    assert report.updates_seen > 150
    assert sorted([*resumed, *report.woken]) == sorted(str(run.id) for run in runs)
    assert {world.run(run).state.name for run in runs} == {"Resuming"}


def test_a_run_that_could_not_look_is_woken_soon_and_named_when_it_lasts(world, asleep):
    _, (first, third) = asleep("again", 2)
    sweep(full_check_minutes=0)
    set_tag(first.id, RETRY_TAG, "1")
    set_tag(third.id, RETRY_TAG, "3")
    report = sweep(full_check_minutes=FEED_ONLY)
    assert report.woken == ()
    assert (
        sum(f"run {third.name} is suspended and could not go on 3 times" in line for line in report.attention)
        == 1
    )
    soon = swept_at(datetime.now(UTC) + timedelta(minutes=6), FEED_ONLY).woken
    assert str(first.id) in soon
    assert str(third.id) not in soon
    assert str(third.id) in swept_at(datetime.now(UTC) + timedelta(minutes=21), FEED_ONLY).woken


def test_a_passed_deadline_wakes_its_run_although_the_full_check_is_rare(world, asleep):
    _, (run,) = asleep("deadline", 1, deadline_days=1)
    report = sweep(full_check_minutes=0)
    mark = mark_of(world, run)
    assert mark.next_deadline is not None, (mark, report)
    assert timedelta(hours=20) < mark.next_deadline - datetime.now(UTC) < timedelta(days=1)
    later = datetime.now(UTC) + timedelta(days=1, minutes=5)
    assert str(run.id) in swept_at(later, FEED_ONLY).woken


def test_the_end_of_the_last_child_wakes_the_parent_although_its_hook_was_lost(world, asleep):
    _, (parent, one, two) = asleep("family", 3)
    sweep(full_check_minutes=0)
    world.api.update_flow_run(parent.id, tags=["assay", WAITS_TAG + "family"])
    for child in (one, two):
        world.api.update_flow_run(child.id, tags=["assay", GROUP_TAG + "family"])
    assert sweep(full_check_minutes=FEED_ONLY).woken == ()
    world.api.set_flow_run_state(one.id, Completed(), force=True)
    assert sweep(full_check_minutes=FEED_ONLY).woken == ()
    world.api.set_flow_run_state(two.id, Crashed(), force=True)
    assert str(parent.id) not in sweep(full_check_minutes=FEED_ONLY).woken  # it is started again
    world.api.set_flow_run_state(two.id, Completed(), force=True)
    assert str(parent.id) in sweep(full_check_minutes=FEED_ONLY).woken


def test_runs_that_need_a_person_are_named_with_the_next_step(world, asleep):
    _, (crashed, silent, late, fine) = asleep("attention", 4)
    scheduled = Scheduled(scheduled_time=datetime.now(UTC) - timedelta(hours=2))
    for run, state in ((crashed, Crashed()), (silent, Running()), (late, scheduled)):
        world.api.set_flow_run_state(run.id, state, force=True)
    now = datetime.now(UTC) + timedelta(minutes=31)
    lines = [problem.line for problem in find_stuck_runs(world.api, now)]
    mine = [line for line in lines if any(run.name in line for run in (crashed, silent, late, fine))]
    assert len(mine) == 3
    for run, words in ((crashed, "has crashed"), (silent, "without a heartbeat"), (late, "no worker serves")):
        assert sum(run.name in line and words in line for line in mine) == 1


def heartbeat(world, run, moment):
    """As its process would send one."""
    said = Event(
        event="prefect.flow-run.heartbeat",
        occurred=moment,
        resource={"prefect.resource.id": f"prefect.flow-run.{run.id}"},
    )
    world.api.request("POST", "/events", json=[said.model_dump(mode="json")])


def test_a_run_that_is_silent_at_both_looks_is_declared_crashed_and_taken_up(world, asleep, monkeypatch):
    """Whose machine has died, perhaps before the first heartbeat; one that lives is left alone."""
    _, (dead, alive, mute, back) = asleep("silence", 4)
    for run in (dead, alive, mute, back):
        world.api.set_flow_run_state(run.id, Running(), force=True)
    begun = datetime.now(UTC)

    def at(minutes):
        return begun + timedelta(minutes=minutes)

    def state(run):
        return world.run(run).state.name

    def beats(run, moment):
        heartbeat(world, run, moment)
        eventually(
            lambda: last_heartbeat(world.api, run, world.run(run).state, moment) == moment,
            seconds=60,
            what="the heartbeat to be stored",
        )

    def meanwhile(seconds):
        assert seconds == 240
        assert [state(run) for run in (dead, back)] == ["Running", "Running"]
        beats(back, at(13))  # the server was away, not the process

    for run in (dead, alive, back):
        beats(run, at(0.1))
    beats(alive, at(11))
    looks = partial(mark_missing_heartbeats_crashed, sleep=meanwhile)
    monkeypatch.setattr(sys.modules[_Sweep.__module__], "mark_missing_heartbeats_crashed", looks)
    report = swept_at(at(12), FEED_ONLY)
    # By the server's clock it has crashed long ago, so that it is taken up at once, beside an automation, too.
    assert {str(dead.id), str(mute.id)} <= set(report.woken)
    assert [state(run) for run in (dead, alive, mute, back)] == [
        "AwaitingRetry",
        "Running",
        "AwaitingRetry",
        "Running",
    ]
    (crashed,) = [s for s in world.api.read_flow_run_states(dead.id) if s.is_crashed()]
    assert "No heartbeat for 600 s" in crashed.message
    for run in (alive, back):  # other tests sweep at later times
        world.api.set_flow_run_state(run.id, Completed(), force=True)


def test_pages_are_whole_while_runs_leave_them(world, asleep, monkeypatch):
    _, runs = asleep("pages", 12)
    monkeypatch.setattr("prefect_assay.runs.queries._PAGE", 5)
    wanted = suspended_filter().model_copy(update={"id": None})
    every = {run.id for page in read_run_pages(world.api, wanted) for run in page}
    seen = []
    for number, page in enumerate(read_run_pages(world.api, wanted)):
        seen += [run.id for run in page]
        if number == 0:  # those in front leave: a plain offset would now jump over as many
            for run in page[:4]:
                world.api.set_flow_run_state(run.id, Completed(), force=True)
    assert len(seen) == len(set(seen))
    assert set(seen) == every
    assert {run.id for run in runs} <= every
