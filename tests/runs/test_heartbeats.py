"""Which running runs have lost their process, by their heartbeats."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from prefect.client.schemas.objects import State, StateType
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

from prefect_assay.deployments.serve import SWEEP_INTERVAL
from prefect_assay.deployments.settings_files import RUNNER, settings_of
from prefect_assay.runs import heartbeats

NOW = datetime.now(UTC)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


class Server:
    """Runs and their last heartbeats, as the two looks of the sweep see them."""

    def __init__(self, monkeypatch, *ages, state=StateType.RUNNING, age=17 * MINUTE):
        self.runs = [
            SimpleNamespace(id=number, state=State(type=state, timestamp=NOW - age))
            for number in range(len(ages))
        ]
        self.beats = [None if age is None else NOW - age for age in ages]
        self.set, self.slept = {}, []
        monkeypatch.setattr(
            heartbeats,
            "recoverable_runs",
            lambda _client, *kinds: [run for run in self.runs if run.state.type in kinds],
        )
        monkeypatch.setattr(heartbeats, "last_heartbeat", lambda _client, run, *_: self.beats[run.id])
        monkeypatch.setattr(heartbeats, "set_state", self.accept)

    def accept(self, _client, run_id, state):
        self.set[run_id] = state.type
        return True

    def swept(self, meanwhile=lambda: None):
        def sleep(seconds):
            self.slept.append(seconds)
            meanwhile()

        return heartbeats.mark_missing_heartbeats_crashed(None, NOW, sleep)


@pytest.mark.parametrize(
    ("state", "ended"),
    [(StateType.RUNNING, StateType.CRASHED), (StateType.CANCELLING, StateType.CANCELLED)],
)
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
def test_a_run_is_dead_that_is_silent_and_stays_so(monkeypatch, age, last, dead, state, ended):
    """Crashed would start a run again that somebody has canceled."""
    server = Server(monkeypatch, last, state=state, age=age)
    assert server.swept() == ([0] if dead else [])
    assert server.set == ({0: ended} if dead else {})
    assert server.slept == ([240] if dead else [])  # nobody waits where nobody is silent


def test_after_a_stall_of_the_server_those_that_live_are_heard(monkeypatch):
    """All heartbeats are missing at the first look: the server's fault, but for one run."""
    server = Server(monkeypatch, *[12 * MINUTE] * 5)

    def back():
        server.beats[:4] = [NOW + MINUTE] * 4

    assert server.swept(back) == [4]


@pytest.mark.parametrize("ahead", [-DAY / 2, -11 * MINUTE, 11 * MINUTE])
def test_a_wrong_clock_of_the_sweep_kills_no_run(monkeypatch, ahead):
    server = Server(monkeypatch, ahead)

    def live():
        server.beats[0] += 3 * MINUTE

    assert server.swept(live) == []


def test_a_run_that_was_suspended_and_woken_meanwhile_is_another_execution(monkeypatch):
    server = Server(monkeypatch, None)

    def woken():
        server.runs[0].state = State(type=StateType.RUNNING, timestamp=NOW - 12 * MINUTE)

    assert server.swept(woken) == []


@pytest.mark.parametrize(("age", "dead"), [(17 * MINUTE, False), (2 * DAY, True)])
def test_where_heartbeats_are_switched_off_only_a_day_counts(monkeypatch, age, dead):
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        assert bool(Server(monkeypatch, None, age=age).swept()) is dead


def test_with_the_shipped_settings_a_dead_run_goes_on_within_ten_minutes(monkeypatch):
    interval = int(settings_of(RUNNER)["PREFECT_FLOWS_HEARTBEAT_FREQUENCY"])
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: interval}):
        server = Server(monkeypatch, heartbeats.default_silence() + timedelta(seconds=1))
        assert server.swept() == [0]
        found = heartbeats.default_silence() + SWEEP_INTERVAL + timedelta(seconds=server.slept[0])
        assert found < 10 * MINUTE
        # A process at Prefect's own interval, elsewhere, is heard between the two looks.
        assert heartbeats.default_silence() + timedelta(seconds=server.slept[0]) > timedelta(seconds=180)


@pytest.mark.parametrize(("state", "since"), [(StateType.RUNNING, NOW), (StateType.CANCELLING, None)])
def test_the_heartbeats_of_a_run_that_is_being_canceled_are_those_before(state, since):
    asked = []
    server = SimpleNamespace(
        read_events=lambda wanted, **_: asked.append(wanted.occurred.since) or SimpleNamespace(events=[])
    )
    run = SimpleNamespace(id="r")
    assert heartbeats.last_heartbeat(server, run, State(type=state, timestamp=NOW), NOW) is None
    assert asked == [since or NOW - heartbeats.default_silence()]
