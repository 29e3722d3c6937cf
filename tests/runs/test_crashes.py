"""How often a run may crash, counted from its history, and which crashed runs the sweep reschedules."""

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import uuid4

import httpx
import pytest
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.client.schemas.responses import SetStateStatus
from prefect.exceptions import Abort

from prefect_assay.deployments.automations import CRASHES, automations
from prefect_assay.runs import crashes
from prefect_assay.runs.crashes import CRASHES_MAX, crashes_in_a_row, reschedule_crashed
from prefect_assay.runs.states import LOST_AFTER, has_ended

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def states(*types, last=NOW):
    """A history of these types, a minute apart."""
    start = last - timedelta(minutes=len(types) - 1)
    return [State(type=type_, timestamp=start + timedelta(minutes=n)) for n, type_ in enumerate(types)]


CRASH = (StateType.RUNNING, StateType.CRASHED, StateType.SCHEDULED)


@pytest.mark.parametrize(
    ("types", "count"),
    [
        ((StateType.SCHEDULED, StateType.PENDING, StateType.RUNNING), 0),
        (CRASH, 1),
        (CRASH * 6, 6),
        ((*CRASH * 3, StateType.PAUSED, StateType.SCHEDULED, *CRASH), 1),
        ((*CRASH * 6, StateType.FAILED, StateType.SCHEDULED, StateType.RUNNING), 0),
        # reported a second time, after the rescheduling and before the next start
        ((*CRASH, StateType.CRASHED), 1),
        ((*CRASH, StateType.CRASHED, StateType.SCHEDULED, StateType.PENDING, StateType.RUNNING), 1),
        ((*CRASH, StateType.CRASHED, StateType.SCHEDULED, *CRASH), 2),
        ((StateType.PENDING, StateType.CRASHED, StateType.SCHEDULED) * 3, 3),
        # reported twice: at once, and while the next process starts
        ((*CRASH, StateType.PENDING, StateType.CRASHED, StateType.RUNNING), 1),
        ((*CRASH, StateType.PENDING, StateType.CRASHED, StateType.RUNNING, StateType.CRASHED), 2),
        ((StateType.RUNNING, StateType.CRASHED, StateType.CRASHED), 1),
        ((StateType.RUNNING, StateType.CRASHED, StateType.RUNNING), 1),
    ],
)
def test_crashes_are_counted_since_the_last_wait_or_end(types, count):
    history = states(*types)
    assert crashes_in_a_row(history) == crashes_in_a_row(reversed(history)) == count


class Api:
    """One run with a history, as the two questions and the one answer of `reschedule_crashed` see it."""

    automated = True

    def __init__(self, *types, age):
        self.history = states(*types, last=NOW - age)
        self.run = FlowRun(id=uuid4(), flow_id=uuid4(), name="run", state=self.history[-1])
        self.set = []

    def read_flow_runs(self, **_filters):
        return [self.run]

    def read_flow_run_states(self, _run_id):
        return self.history

    def read_automations_by_name(self, name):
        if self.automated is None:
            request = httpx.Request("POST", "http://prefect")
            httpx.Response(404, request=request).raise_for_status()
        return [SimpleNamespace(enabled=self.automated)] if name == CRASHES else []

    def set_flow_run_state(self, _run_id, state, *, force=False):
        self.set.append((state.type, state.name, force))
        return SimpleNamespace(status=SetStateStatus.ACCEPT)


def crashed(times):
    return (StateType.SCHEDULED, StateType.PENDING, StateType.CRASHED) * times


@pytest.mark.parametrize(
    ("types", "age", "taken"),
    [
        (crashed(1), timedelta(minutes=1), False),  # the automation is at it
        (crashed(1), timedelta(minutes=3), True),
        (crashed(2), timedelta(minutes=3), False),  # four times as long after each crash
        (crashed(2), timedelta(minutes=9), True),
        (crashed(5), timedelta(hours=8), False),
        (crashed(5), timedelta(hours=9), True),
        (crashed(1), LOST_AFTER + timedelta(minutes=1), False),
        ((StateType.PENDING,), timedelta(minutes=3), False),  # a slow start
        ((StateType.PENDING,), timedelta(minutes=5), True),  # its worker has gone
    ],
)
def test_the_sweep_reschedules_crashed_runs_that_are_left(types, age, taken):
    api = Api(*types, age=age)
    problems = []
    assert reschedule_crashed(api, NOW, problems) == ([api.run.id] if taken else [])
    pending = types[-1] == StateType.PENDING
    assert api.set == ([(StateType.SCHEDULED, "AwaitingRetry", pending)] if taken else [])
    assert problems == []


@pytest.mark.parametrize("automated", [False, None], ids=["disabled", "a server without automations"])
@pytest.mark.parametrize(
    ("times", "age", "taken"),
    [
        (1, timedelta(), True),
        (1, -timedelta(minutes=1), True),  # set to Crashed by this very sweep
        (2, timedelta(minutes=3), False),
        (2, timedelta(minutes=9), True),
    ],
)
def test_where_no_automation_is_at_it_the_sweep_reschedules_the_first_crash_at_once(
    automated, times, age, taken
):
    api = Api(*crashed(times), age=age)
    api.automated = automated
    assert reschedule_crashed(api, NOW, []) == ([api.run.id] if taken else [])


@pytest.mark.parametrize(
    ("types", "age", "then"),
    [
        (crashed(1), timedelta(minutes=3), StateType.CANCELLED),
        (crashed(CRASHES_MAX + 1), timedelta(minutes=3), StateType.CANCELLED),
        (crashed(1), timedelta(minutes=3), StateType.SCHEDULED),  # by the automation
        ((StateType.PENDING,), timedelta(minutes=31), StateType.RUNNING),
        ((StateType.PENDING,), timedelta(minutes=31), StateType.CANCELLED),
    ],
)
def test_what_happens_to_a_run_after_it_was_listed_stays(types, age, then):
    api = Api(*types, age=age)
    api.history.append(State(type=then, timestamp=NOW))
    problems = []
    assert reschedule_crashed(api, NOW, problems) == []
    assert (api.set, problems) == ([], [])


(AUTOMATION,) = (each.actions[0].message for each in automations() if each.name == CRASHES)
SWEEP = "Rescheduled by the sweep: the run crashed, or its start was never finished."
BY_HAND = "Retry from the UI"
STARTED = (StateType.PENDING, StateType.RUNNING)
LATE = StateType.SCHEDULED  # as the late runs service names a run that still waits


@pytest.mark.parametrize(
    ("types", "ended"),
    [
        ((*CRASH[:2], StateType.CANCELLED, AUTOMATION, *STARTED), True),
        ((*CRASH[:2], StateType.CANCELLED, SWEEP, LATE, *STARTED), True),
        (
            (*CRASH[:2], StateType.CANCELLED, SWEEP, StateType.PENDING, StateType.CRASHED, SWEEP, *STARTED),
            True,
        ),
        ((*CRASH[:2], StateType.CANCELLED, BY_HAND, *STARTED), False),
        ((*CRASH[:2], StateType.CANCELLED, BY_HAND, LATE, *STARTED), False),
        (
            (*CRASH[:2], StateType.CANCELLED, AUTOMATION, *STARTED, StateType.CANCELLED, BY_HAND, *STARTED),
            False,
        ),
        (
            (*CRASH[:2], StateType.CANCELLED, BY_HAND, *STARTED, StateType.CRASHED, AUTOMATION, *STARTED),
            False,
        ),
        # before this was checked
        ((*CRASH[:2], StateType.CANCELLED, SWEEP, *STARTED, StateType.PAUSED, LATE, *STARTED), False),
        ((*CRASH[:2], AUTOMATION, *STARTED), False),
    ],
)
def test_a_run_that_was_canceled_while_it_was_rescheduled_is_canceled_again(monkeypatch, types, ended):
    """The automation and the sweep see the crash, and Prefect starts a canceled run again."""
    kinds = [each if isinstance(each, StateType) else StateType.SCHEDULED for each in types]
    api = Api(*kinds, age=timedelta())
    for state, each in zip(api.history, types, strict=True):
        state.message = None if isinstance(each, StateType) else each
    monkeypatch.setattr(crashes, "current_run", SimpleNamespace(id=str(api.run.id), run_count=2))
    monkeypatch.setattr(crashes, "get_client", lambda **_: nullcontext(api))
    if ended:
        with pytest.raises(Abort, match="canceled"):
            crashes.stop_crash_loop()
    else:
        crashes.stop_crash_loop()
    assert api.set == ([(StateType.CANCELLED, "Cancelled", False)] if ended else [])


def test_too_many_crashes_fail_the_run_with_the_next_step():
    api = Api(*crashed(CRASHES_MAX + 1), age=timedelta(minutes=3))
    problems = []
    assert reschedule_crashed(api, NOW, problems) == []
    assert api.set == [(StateType.FAILED, "Failed", False)]
    assert f"crashed {CRASHES_MAX + 1} times" in problems[0]


@pytest.mark.parametrize(
    ("type_", "age", "ended"),
    [
        (StateType.COMPLETED, timedelta(), True),
        (StateType.FAILED, timedelta(), True),
        (StateType.CRASHED, timedelta(minutes=1), False),  # it is scheduled again
        (StateType.CRASHED, LOST_AFTER + timedelta(minutes=1), True),
        (StateType.PAUSED, LOST_AFTER * 2, False),
    ],
)
def test_a_crashed_child_has_not_ended_yet(type_, age, ended):
    state = State(type=type_, timestamp=datetime.now(UTC) - age)
    assert has_ended(FlowRun(id=uuid4(), flow_id=uuid4(), state=state)) is ended
