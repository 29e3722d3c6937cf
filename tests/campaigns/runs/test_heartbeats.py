"""Which running runs have lost their process, by their heartbeats."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from prefect.client.schemas.objects import State, StateType
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

from prefect_assay.campaigns.runs import heartbeats
from prefect_assay.deployments.serve import SWEEP_INTERVAL
from prefect_assay.deployments.settings_files import RUNNER, read_shipped_settings

NOW = datetime.now(UTC)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


def is_dead(monkeypatch, age, last, kind=StateType.RUNNING):
    """Whether a run that entered its state so long ago, with a last heartbeat so long ago, has lost its process."""
    monkeypatch.setattr(heartbeats, "read_last_heartbeat", lambda *_: None if last is None else NOW - last)
    run = SimpleNamespace(state=State(type=kind, timestamp=NOW - age))
    return heartbeats.is_silent(None, run, NOW)


@pytest.mark.parametrize(
    ("age", "last", "dead"),
    [
        (17 * MINUTE, None, True),  # killed before its first heartbeat was sent
        (8 * DAY, None, True),  # Prefect has deleted its heartbeats
        (8 * DAY, MINUTE, False),
        (17 * MINUTE, 16 * MINUTE, True),
        (5 * MINUTE, None, False),
    ],
)
def test_a_running_run_without_heartbeats_has_lost_its_process(monkeypatch, age, last, dead):
    assert is_dead(monkeypatch, age, last) is dead


@pytest.mark.parametrize("kind", [StateType.PAUSED, StateType.SCHEDULED, StateType.CANCELLING])
def test_only_running_runs_have_heartbeats(monkeypatch, kind):
    assert not is_dead(monkeypatch, DAY, None, kind)


def test_without_heartbeats_no_execution_lasts_a_day(monkeypatch):
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        assert not is_dead(monkeypatch, 23 * 60 * MINUTE, None)
        assert is_dead(monkeypatch, DAY + MINUTE, None)


def test_with_the_shipped_settings_a_dead_run_is_replaced_within_ten_minutes():
    frequency = int(read_shipped_settings(RUNNER)["PREFECT_FLOWS_HEARTBEAT_FREQUENCY"])
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: frequency}):
        assert heartbeats.default_silence() + SWEEP_INTERVAL < 10 * MINUTE
        # A process at Prefect's own interval, elsewhere, is alive.
        assert heartbeats.default_silence() > timedelta(seconds=180)
