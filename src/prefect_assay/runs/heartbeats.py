"""Runs whose process sends no heartbeats any more: the sweep marks them as crashed where no automation did.

One that is being canceled is set to Cancelled, where the Prefect server's own cleanup, after five minutes, is switched off.
A server that was away itself looks the same, so a run has to be silent at two sweeps.
"""

from datetime import datetime, timedelta
from typing import Final

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.events.filters import EventAnyResourceFilter, EventFilter, EventNameFilter, EventOccurredFilter
from prefect.settings import get_current_settings
from prefect.states import Cancelled, Crashed
from prefect.types import DateTime

from prefect_assay.models.sweep import Silence
from prefect_assay.runs.queries import recoverable_runs
from prefect_assay.runs.states import set_state

# Prefect sends a heartbeat every 180 s by default. Three may be lost; a margin for a busy server.
_MISSED_HEARTBEATS: Final = 3
_MARGIN: Final = timedelta(seconds=60)
_NO_EXECUTION_LASTS: Final = timedelta(days=1)
_NOTED_MAX: Final = 100  # a Prefect variable holds 5,000 characters; later sweeps note the others
_HEARTBEAT: Final = "prefect.flow-run.heartbeat"


def _heartbeat() -> timedelta:
    # Without heartbeats here (None) a process elsewhere may still send them at Prefect's default.
    return timedelta(seconds=get_current_settings().flows.heartbeat_frequency or 180)


def heartbeat_is_due(age: timedelta) -> bool:
    """Return True if a live process has sent a heartbeat within this time."""
    return age > _heartbeat() + _MARGIN


def default_silence() -> timedelta:
    """Return the longest normal time without a heartbeat: three intervals of the Prefect settings and a margin."""
    return _MISSED_HEARTBEATS * _heartbeat() + _MARGIN


def mark_missing_heartbeats_crashed(client: SyncPrefectClient, now: datetime, noted: Silence) -> Silence:
    """Set runs to Crashed that were silent at an earlier sweep (`noted`) and still are; returns what to note now.

    Runs that are being canceled are set to Cancelled.

    A run without any heartbeat since it was started is left alone for a day: its process may send none. No execution
    lasts that long, and Prefect deletes heartbeats after a week, in which no server may have run.
    """
    if noted.since and now - noted.since < _heartbeat() + _MARGIN:  # too early; the noted runs stay noted
        return noted
    silent = {str(run.id): run for run in _silent(client, now)}
    message = f"No heartbeat for {default_silence().total_seconds():.0f} s: its process is gone."
    for run_id in silent.keys() & set(noted.runs):
        run = silent[run_id]
        canceling = run.state is not None and run.state.is_cancelling()
        if set_state(client, run.id, Cancelled(message=message) if canceling else Crashed(message=message)):
            del silent[run_id]
    return Silence(since=now, runs=tuple(sorted(silent))[:_NOTED_MAX]) if silent else Silence()


def last_heartbeat(client: SyncPrefectClient, run: FlowRun, state: State, now: datetime) -> datetime | None:
    """Return the time of the run's last heartbeat since it entered this state.

    A run that is being canceled has sent them in the state before.
    """
    since = state.timestamp - (default_silence() if state.is_cancelling() else timedelta())
    found = client.read_events(
        EventFilter(
            event=EventNameFilter(name=[_HEARTBEAT]),
            any_resource=EventAnyResourceFilter(id=[f"prefect.flow-run.{run.id}"]),
            occurred=EventOccurredFilter(since=_moment(since), until=_moment(now)),
        ),
        limit=1,  # the latest comes first
    )
    return found.events[0].occurred if found.events else None


def _moment(when: datetime) -> DateTime:
    return DateTime.fromtimestamp(when.timestamp(), when.tzinfo)


def _silent(client: SyncPrefectClient, now: datetime) -> list[FlowRun]:
    since = now - default_silence()
    return [
        run
        for run in recoverable_runs(client, StateType.RUNNING, StateType.CANCELLING)
        if run.state is not None
        and run.state.timestamp < since
        and _is_silent(run.state, last_heartbeat(client, run, run.state, now), since, now)
    ]


def _is_silent(state: State, last: datetime | None, since: datetime, now: datetime) -> bool:
    return last < since if last is not None else now - state.timestamp > _NO_EXECUTION_LASTS
