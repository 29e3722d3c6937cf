"""Marks runs without heartbeats as crashed, for the sweep, where no automation did.

One that is being canceled is set to Cancelled, where the Prefect server's own cleanup, after five minutes, is switched off.
A server that was away itself looks the same, so the sweep looks twice, with the time of a heartbeat between.
"""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.events.filters import EventFilter
from prefect.settings import get_current_settings
from prefect.states import Cancelled, Crashed

from prefect_assay.runs.queries import recoverable_runs
from prefect_assay.runs.states import set_state

# Of Prefect's default interval of 180 s, or the 30 s of `runner.env`, three may be lost; a margin for a busy server.
_MISSED_HEARTBEATS: Final = 3
_MARGIN: Final = timedelta(seconds=60)
_CLOCKS_DIFFER: Final = timedelta(days=1)
_NO_EXECUTION_LASTS: Final = timedelta(days=1)
_HEARTBEAT: Final = "prefect.flow-run.heartbeat"

_Sign = tuple[datetime, datetime | None]  # when the run entered its state, and its last heartbeat


def _heartbeat() -> timedelta:
    # Without heartbeats here (None) a process elsewhere may still send them at Prefect's default.
    return timedelta(seconds=get_current_settings().flows.heartbeat_frequency or 180)


def heartbeat_is_due(age: timedelta) -> bool:
    """Return True if a live process has sent a heartbeat within this time."""
    return age > _heartbeat() + _MARGIN


def default_silence() -> timedelta:
    """Return the longest normal time without a heartbeat: three intervals of the Prefect settings and a margin."""
    return _MISSED_HEARTBEATS * _heartbeat() + _MARGIN


def mark_missing_heartbeats_crashed(
    client: SyncPrefectClient, now: datetime, sleep: Callable[[float], None] = time.sleep
) -> list[UUID]:
    """Set runs to Crashed that are silent, and stay so while a live process would send a heartbeat; returns their ids.

    Runs that are being canceled are set to Cancelled.

    The second look compares with the first, not with a clock: a live run is heard as soon as the server is back. With
    the shipped interval, one at Prefect's default interval is heard, too.
    """
    silent = _silent(client, now)
    if not silent:
        return []
    pause = _heartbeat() + _MARGIN
    sleep(pause.total_seconds())
    message = f"No heartbeat for {default_silence().total_seconds():.0f} s: its process is gone."
    marked = []
    for run, sign in _silent(client, now + pause).values():
        canceling = run.state is not None and run.state.is_cancelling()
        state: State = Cancelled(message=message) if canceling else Crashed(message=message)
        if run.id in silent and silent[run.id][1] == sign and set_state(client, run.id, state):
            marked.append(run.id)
    return marked


def last_heartbeat(client: SyncPrefectClient, run: FlowRun, state: State, now: datetime) -> datetime | None:
    """Return the time of the run's last heartbeat since it entered this state.

    A run that is being canceled has sent them in the state before.
    """
    since = state.timestamp - (default_silence() if state.is_cancelling() else timedelta())
    found = client.read_events(
        EventFilter.model_validate(
            {
                "event": {"name": [_HEARTBEAT]},
                "any_resource": {"id": [f"prefect.flow-run.{run.id}"]},
                "occurred": {"since": since, "until": now + _CLOCKS_DIFFER},
            }
        ),
        limit=1,  # the latest comes first
    )
    return found.events[0].occurred if found.events else None


def _silent(client: SyncPrefectClient, now: datetime) -> dict[UUID, tuple[FlowRun, _Sign]]:
    since = now - default_silence()
    found = {}
    for run in recoverable_runs(client, StateType.RUNNING, StateType.CANCELLING):
        if run.state is None or run.state.timestamp >= since:
            continue
        last = last_heartbeat(client, run, run.state, now)
        if _is_silent(run.state, last, since, now):
            found[run.id] = (run, (run.state.timestamp, last))
    return found


def _is_silent(state: State, last: datetime | None, since: datetime, now: datetime) -> bool:
    """A process sends its first heartbeat when it starts; where they are switched off, no execution lasts a day."""
    if last is None and get_current_settings().flows.heartbeat_frequency is None:
        return now - state.timestamp > _NO_EXECUTION_LASTS
    return last is None or last < since
