"""Which running runs have lost their process, by the heartbeats that Prefect's runner and worker send."""

from datetime import datetime, timedelta
from typing import Any, Final

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun, State
from prefect.events.filters import EventFilter
from prefect.settings import get_current_settings

_PREFECTS_INTERVAL: Final = timedelta(seconds=180)
# Of Prefect's interval, or the 30 s of `runner.env`, three may be lost; a margin for a busy server.
_MISSED_HEARTBEATS: Final = 3
_MARGIN: Final = timedelta(seconds=60)
_CLOCKS_DIFFER: Final = timedelta(days=1)
_NO_EXECUTION_LASTS: Final = timedelta(days=1)
_HEARTBEAT: Final = "prefect.flow-run.heartbeat"


def _read_heartbeat() -> timedelta:
    frequency = get_current_settings().flows.heartbeat_frequency
    return timedelta(seconds=frequency) if frequency else _PREFECTS_INTERVAL


def default_silence() -> timedelta:
    """Return the longest normal time without a heartbeat: three intervals of the Prefect settings and a margin.

    A process elsewhere may send them at Prefect's own interval, so it is at least one of these.
    """
    return max(_MISSED_HEARTBEATS * _read_heartbeat(), _PREFECTS_INTERVAL) + _MARGIN


def is_silent(client: SyncPrefectClient, run: FlowRun, now: datetime) -> bool:
    """Return True if a running run has no process any more. A process sends its first heartbeat when it starts."""
    if run.state is None or not run.state.is_running() or now - run.state.timestamp <= default_silence():
        return False
    last = read_last_heartbeat(client, run, run.state, now)
    if last is None and get_current_settings().flows.heartbeat_frequency is None:
        return now - run.state.timestamp > _NO_EXECUTION_LASTS  # they are switched off
    return last is None or now - last > default_silence()


def read_last_heartbeat(
    client: SyncPrefectClient, run: FlowRun, state: State[Any], now: datetime
) -> datetime | None:
    """Return the time of the run's last heartbeat since it entered this state."""
    page = client.read_events(
        EventFilter.model_validate(
            {
                "event": {"name": [_HEARTBEAT]},
                "any_resource": {"id": [f"prefect.flow-run.{run.id}"]},
                "occurred": {"since": state.timestamp, "until": now + _CLOCKS_DIFFER},
            }
        ),
        limit=1,  # the latest comes first
    )
    return page.events[0].occurred if page.events else None
