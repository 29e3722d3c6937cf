"""The demo waits as long as its run and its processes make progress, however slow the machine is."""

from types import SimpleNamespace

import pytest

from prefect_assay.cli.demo import campaign
from prefect_assay.cli.demo.campaign import CampaignWatch
from prefect_assay.errors import ConfigurationError


class Stack:
    """A stack whose flow process works `busy` of the seconds that pass; the clock is the test's."""

    def __init__(self, busy):
        self.busy, self.now, self.logs = busy, 0.0, {}

    def check(self):
        pass

    def cpu_seconds(self):
        return {1: int(self.now * self.busy)}

    def failure(self, name, what):
        return ConfigurationError(f"{name} {what}")

    def sleep(self, _seconds):
        self.now += 10


@pytest.fixture
def watch(monkeypatch):
    def make(busy):
        stack = Stack(busy)
        clock = SimpleNamespace(monotonic=lambda: stack.now, sleep=stack.sleep)
        monkeypatch.setattr(campaign, "time", clock)
        watched = CampaignWatch(stack, None, None, None)
        run = SimpleNamespace(state=None, name="egfr-round1")
        monkeypatch.setattr(watched, "run", lambda: run)
        return watched, stack

    return make


def test_a_slow_machine_is_waited_for_as_long_as_its_processes_work(watch):
    watched, stack = watch(busy=0.01)
    hours = 3600 * 3
    assert watched.until(lambda: stack.now if stack.now > hours else None, "a plan") > hours


def test_without_any_progress_the_demo_gives_up(watch):
    watched, stack = watch(busy=0)
    with pytest.raises(ConfigurationError, match="runner has made no progress towards a plan for 300 s"):
        watched.until(lambda: None, "a plan")
    assert 300 < stack.now < 400
