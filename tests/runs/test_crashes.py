"""How often a run may crash, counted from its history, and which crashed runs the sweep reschedules."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.client.schemas.responses import SetStateStatus

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

    def __init__(self, *types, age):
        self.history = states(*types, last=NOW - age)
        self.run = FlowRun(id=uuid4(), flow_id=uuid4(), name="run", state=self.history[-1])
        self.set = []

    def read_flow_runs(self, **_filters):
        return [self.run]

    def read_flow_run_states(self, _run_id):
        return self.history

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
        ((StateType.PENDING,), timedelta(minutes=20), False),  # a slow start
        ((StateType.PENDING,), timedelta(minutes=31), True),  # its worker has gone
    ],
)
def test_the_sweep_reschedules_crashed_runs_that_are_left(types, age, taken):
    api = Api(*types, age=age)
    problems = []
    assert reschedule_crashed(api, NOW, problems) == ([str(api.run.id)] if taken else [])
    pending = types[-1] == StateType.PENDING
    assert api.set == ([(StateType.SCHEDULED, "AwaitingRetry", pending)] if taken else [])
    assert problems == []


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
