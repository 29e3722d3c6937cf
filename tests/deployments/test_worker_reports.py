"""Where our worker differs from Prefect's: crashes reported once, runs whose last process lives. Real kills: test_recovery.py."""

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import uuid4

import httpx
import pytest
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.workers.process import ProcessWorker

from prefect_assay.deployments.worker import report_crashes_once

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
