"""Where our worker differs from Prefect's: crashes reported once, runs whose last process lives. Real kills: test_recovery.py."""

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import uuid4

import anyio
import httpx
import pytest
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.settings import PREFECT_LOGGING_TO_API_ENABLED, temporary_settings
from prefect.workers.process import ProcessWorker

from prefect_assay.deployments.worker import leave_runs_in_progress, report_crashes_once

TAKEN = datetime(2026, 11, 21, tzinfo=UTC)


def state(kind, seconds):
    return State(type=kind, timestamp=TAKEN + timedelta(seconds=seconds))


class Client:
    def __init__(self, states):
        self.states = states

    async def read_flow_run_states(self, run_id):
        if self.states is None:
            raise httpx.ConnectError("gone")
        return self.states


@pytest.fixture
def reports(monkeypatch):
    messages = []

    async def report(self, flow_run, message, client=None):
        messages.append(message)

    monkeypatch.setattr(ProcessWorker, "_propose_crashed_state", report)
    report_crashes_once()
    return messages


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([state(StateType.PENDING, 1), state(StateType.RUNNING, 2)], ["gone"]),
        ([state(StateType.RUNNING, 2), state(StateType.CRASHED, 3), state(StateType.SCHEDULED, 4)], []),
        ([state(StateType.CRASHED, -9), state(StateType.RUNNING, 2)], ["gone"]),  # an earlier start's
        (None, ["gone"]),
    ],
)
def test_a_crash_is_reported_once(reports, states, expected):
    run = FlowRun(id=uuid4(), flow_id=uuid4(), updated=TAKEN)  # without its state, as the worker gets it
    worker = SimpleNamespace(client=Client(states))
    asyncio.run(ProcessWorker._propose_crashed_state(worker, run, "gone"))
    assert reports == expected


class TaskGroup:
    def __init__(self):
        self.started = []

    def start_soon(self, _, run):
        self.started.append(run.id)


async def poll(worker, *runs):
    return await worker._submit_scheduled_flow_runs([SimpleNamespace(flow_run=run) for run in runs])


def test_a_run_whose_last_process_lives_waits_for_the_next_poll(monkeypatch):
    """Prefect's worker takes a second slot for it, and ends by the `RuntimeError`, with all its runs."""
    monkeypatch.setattr(
        ProcessWorker, "_submit_scheduled_flow_runs", ProcessWorker._submit_scheduled_flow_runs
    )
    woken, new = (FlowRun(id=uuid4(), flow_id=uuid4()) for _ in range(2))

    async def polls():
        worker = ProcessWorker(work_pool_name="assay", limit=3)
        worker._limiter = anyio.CapacityLimiter(3)
        worker._runs_task_group = TaskGroup()
        worker._limiter.acquire_on_behalf_of_nowait(woken.id)  # its process lives
        with pytest.raises(RuntimeError, match="already holding"):
            await poll(worker, woken)
        leave_runs_in_progress()
        await poll(worker, woken, new)
        assert worker._runs_task_group.started == [new.id]
        worker._limiter.release_on_behalf_of(woken.id)  # it has ended
        await poll(worker, woken)
        return worker._runs_task_group.started

    with temporary_settings({PREFECT_LOGGING_TO_API_ENABLED: False}):
        assert asyncio.run(polls()) == [new.id, woken.id]
