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
    ("age", "last", "dead"),
    [
        (17 * MINUTE, None, False),  # its process may send none
        (8 * DAY, None, True),  # Prefect has deleted its heartbeats
        (8 * DAY, MINUTE, False),
        (17 * MINUTE, 16 * MINUTE, True),
        (5 * MINUTE, None, False),
    ],
)
def test_a_run_is_dead_that_is_silent_at_two_sweeps(monkeypatch, age, last, dead):
    run = SimpleNamespace(id="r", state=State(type=StateType.RUNNING, timestamp=NOW - age))
    crashed = []
    monkeypatch.setattr(heartbeats, "recoverable_runs", lambda _client, _kind: [run])
    monkeypatch.setattr(heartbeats, "last_heartbeat", lambda *_: None if last is None else NOW - last)
    monkeypatch.setattr(
        heartbeats, "set_state", lambda _client, run_id, _state: crashed.append(run_id) or True
    )
    noted = heartbeats.mark_missing_heartbeats_crashed(None, NOW, Silence())
    assert crashed == []
    heartbeats.mark_missing_heartbeats_crashed(None, NOW + 5 * MINUTE, noted)
    assert crashed == (["r"] if dead else [])
