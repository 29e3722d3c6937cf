"""Waiting: a run that was suspended often enough ends, and another one goes on."""

import logging
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from prefect.exceptions import Pause

from prefect_assay.campaigns import suspension
from prefect_assay.campaigns.runs.looks import LONGEST_PAUSE, Look, look_of_state
from prefect_assay.campaigns.suspension import PollPolicy, RunContinues, suspend_until_news
from prefect_assay.errors import ServiceUnavailable

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)


def a_state(key):
    return SimpleNamespace(state_details=SimpleNamespace(pause_key=key))


def test_a_run_that_was_suspended_often_ends_so_that_another_goes_on(monkeypatch):
    keys = {f"look-0-0-{number:032x}" for number in range(200)}
    run = SimpleNamespace(empirical_policy=SimpleNamespace(pause_keys=keys))
    monkeypatch.setattr(suspension, "this_run", lambda: run)
    with pytest.raises(RunContinues, match="3 in the laboratory"):
        suspend_until_news("3 in the laboratory", look=Look.after_success(NOW), has_news=lambda: False)


@pytest.mark.parametrize(
    ("look", "resumed"), [(Look.after_success(NOW), True), (Look.after_failure(NOW, 1), False)]
)
def test_a_run_that_could_not_look_after_suspending_is_resumed_once(monkeypatch, look, resumed):
    """The sweep takes each suspended run for one that has looked."""
    runs, run = [], SimpleNamespace(id="r", empirical_policy=SimpleNamespace(pause_keys=set()))
    monkeypatch.setattr(suspension, "this_run", lambda: run)
    monkeypatch.setattr(suspension, "suspend_run", lambda _, state: raise_error(Pause(state=state)))
    monkeypatch.setattr(suspension, "_resume", runs.append)
    monkeypatch.setattr(suspension, "get_run_logger", lambda: logging.getLogger("run"))
    with pytest.raises(Pause):
        suspend_until_news("m", look=look, has_news=lambda: raise_error(ServiceUnavailable("503")))
    assert runs == [run] * resumed


def raise_error(error):
    raise error


@pytest.mark.parametrize("failures", [1, 2, 3, 20])
def test_a_key_says_when_to_look_next(failures):
    look = Look.after_failure(NOW, failures)
    assert look_of_state(a_state(look.new_key())) == look
    assert look.at - NOW == min(timedelta(minutes=5) * 2 ** (failures - 1), LONGEST_PAUSE)
    assert look.new_key() != look.new_key()


@pytest.mark.parametrize("key", [None, "", "price-abc-1", "look-1-x", "look-1-5-short"])
def test_a_form_and_a_suspension_by_hand_name_no_look(key):
    assert look_of_state(a_state(key)) is None


def test_pauses_of_a_polling_run_grow_to_the_longest():
    policy = PollPolicy(longest_seconds=10, jitter=0)
    assert [policy.pause_seconds(attempt) for attempt in (0, 1, 4, 5, 1000)] == [2.0, 3.0, 10.0, 10.0, 10.0]
