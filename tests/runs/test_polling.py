"""`wait_until` where no suspension is possible: it polls, survives errors, and gives up at the deadline."""

from datetime import timedelta

import pytest
from prefect.logging import disable_run_logger

from prefect_assay.errors import Overdue, ServiceUnavailable, Unauthorized
from prefect_assay.runs.suspend import PollPolicy, can_suspend, wait_until

QUICK = PollPolicy(first_seconds=0.001, longest_seconds=0.002)


@pytest.fixture(autouse=True)
def _no_run_logger():
    with disable_run_logger():
        yield


def test_returns_at_once_when_ready():
    slept = []
    assert wait_until(lambda: 7, key="k", timeout=timedelta(days=1), sleep=slept.append) == 7
    assert slept == []


def test_polls_with_growing_pauses_until_ready():
    answers = iter([None, None, None, "done"])
    slept = []
    value = wait_until(
        lambda: next(answers),
        key="k",
        timeout=timedelta(days=1),
        poll=PollPolicy(first_seconds=1, factor=2, longest_seconds=3, jitter=0),
        sleep=slept.append,
    )
    assert value == "done"
    assert slept == [1, 2, 3]


def test_a_service_that_is_away_does_not_end_the_wait():
    outcomes = iter([ServiceUnavailable("503"), None, ServiceUnavailable("reset"), "done"])

    def ready():
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    assert wait_until(ready, key="k", timeout=timedelta(days=1), poll=QUICK) == "done"


def test_an_error_that_will_not_pass_ends_the_wait():
    def ready():
        raise Unauthorized("token revoked")

    with pytest.raises(Unauthorized):
        wait_until(ready, key="k", timeout=timedelta(days=1), poll=QUICK)


def test_a_polling_run_fails_at_the_deadline_with_the_next_step():
    with pytest.raises(Overdue, match="run the same flow again"):
        wait_until(lambda: None, key="k", timeout=timedelta(seconds=0.05), poll=QUICK)


def test_pause_stays_bounded_after_any_number_of_attempts():
    policy = PollPolicy(first_seconds=1, factor=10, longest_seconds=300, jitter=0.2)
    assert all(240 <= policy.pause(attempt) <= 360 for attempt in (3, 100, 10_000))


def test_cannot_suspend_outside_a_deployed_run():
    assert not can_suspend()
