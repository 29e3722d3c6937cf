"""Which running runs have lost their process, by their heartbeats."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from prefect.client.schemas.objects import State, StateType

from prefect_assay.models.sweep import Silence
from prefect_assay.runs import heartbeats

NOW = datetime.now(UTC)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


@pytest.mark.parametrize(
    ("state", "ended"),
    [(StateType.RUNNING, StateType.CRASHED), (StateType.CANCELLING, StateType.CANCELLED)],
)
@pytest.mark.parametrize(
    ("age", "last", "dead"),
    [
        (17 * MINUTE, None, False),  # its process may send none
        (8 * DAY, None, True),  # Prefect has deleted its heartbeats
        (8 * DAY, MINUTE, False),
        (17 * MINUTE, 16 * MINUTE, True),
        (5 * MINUTE, None, False),
    ],
)
def test_a_run_is_dead_that_is_silent_at_two_sweeps(monkeypatch, age, last, dead, state, ended):
    """Crashed would start a run again that somebody has canceled."""
    run = SimpleNamespace(id="r", state=State(type=state, timestamp=NOW - age))
    found = []
    monkeypatch.setattr(
        heartbeats, "recoverable_runs", lambda _client, *kinds: [run] if state in kinds else []
    )
    monkeypatch.setattr(heartbeats, "last_heartbeat", lambda *_: None if last is None else NOW - last)
    monkeypatch.setattr(
        heartbeats, "set_state", lambda _client, run_id, state: found.append((run_id, state.type)) or True
    )
    noted = heartbeats.mark_missing_heartbeats_crashed(None, NOW, Silence())
    assert found == []
    heartbeats.mark_missing_heartbeats_crashed(None, NOW + 5 * MINUTE, noted)
    assert found == ([("r", ended)] if dead else [])


@pytest.mark.parametrize(("state", "since"), [(StateType.RUNNING, NOW), (StateType.CANCELLING, None)])
def test_the_heartbeats_of_a_run_that_is_being_canceled_are_those_before(state, since):
    asked = []
    server = SimpleNamespace(
        read_events=lambda wanted, **_: asked.append(wanted.occurred.since) or SimpleNamespace(events=[])
    )
    run = SimpleNamespace(id="r")
    assert heartbeats.last_heartbeat(server, run, State(type=state, timestamp=NOW), NOW) is None
    assert asked == [since or NOW - heartbeats.default_silence()]
