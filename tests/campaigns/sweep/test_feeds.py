"""How the feeds of all accounts are read: each once, none hides another, and nothing is lost when a wake-up fails."""

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun
from prefect.client.schemas.responses import SetStateStatus

from prefect_assay.campaigns.runs.looks import Look
from prefect_assay.campaigns.runs.tags import EXPERIMENT_TAG
from prefect_assay.campaigns.sweep import waking
from prefect_assay.campaigns.sweep.progress import SweepProgress
from prefect_assay.campaigns.sweep.waking import Feeds, due_looks
from prefect_assay.campaigns.sweep.watermarks import SweepMemory, SweepState, as_text
from prefect_assay.errors import Unauthorized
from prefect_assay.service.models.update import Update
from support.runs.sweeps import asleep

NOW = datetime.now(UTC)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


class Service:
    """The feed of one account; its clock is so far ahead."""

    def __init__(self, ahead=timedelta()):
        self.rows, self.read = [], 0
        self.updates = SimpleNamespace(iterate=self._iterate)
        self.service_time = NOW + ahead

    def publish(self, experiment, timestamp=NOW):
        self.rows.insert(0, Update(id=f"u-{uuid4()}", experiment_id=experiment, timestamp=timestamp))

    def _iterate(self):
        self.read += 1
        return iter(self.rows)


class Prefect:
    """Variables, and runs that can be resumed unless they are in `stuck`."""

    def __init__(self):
        self.resumed, self.stuck, self.kept = [], set(), {}

    def create_variable(self, variable):
        self.kept[variable.name] = variable.value

    def update_variable(self, variable):
        self.kept[variable.name] = variable.value

    def resume_flow_run(self, run_id, **_):
        if run_id in self.stuck:
            raise RuntimeError("deadlock")
        self.resumed.append(run_id)
        return SimpleNamespace(status=SetStateStatus.ACCEPT)


class Place:
    """Sweeps over the feeds of several accounts."""

    def __init__(self, monkeypatch):
        self.prefect, self.services = Prefect(), {}
        monkeypatch.setattr(waking, "read_account", self._account)
        self.webhook = None

    def _account(self, mark):
        service = next(
            s for ref, s in self.services.items() if as_text({"block_document_id": ref}) == mark.reference
        )
        if isinstance(service, Exception):
            raise service
        credentials = SimpleNamespace(get_client=lambda: nullcontext(service))
        return SimpleNamespace(credentials=credentials, webhook=self.webhook, name="mine")

    def run(self, account, *experiments, suspended=NOW - DAY):
        state = asleep()
        state.timestamp = suspended
        parameters = {"account": {"$ref": {"block_document_id": account}}}
        tags = [EXPERIMENT_TAG + one for one in experiments]
        return FlowRun(id=uuid4(), flow_id=uuid4(), name="run", tags=tags, state=state, parameters=parameters)

    def sweep(self, *runs, swept=None):
        self.prefect.resumed.clear()
        state = SweepState(self.prefect, dict(self.prefect.kept))
        if swept is not None:
            state.save(SweepMemory(swept=swept))
        feeds = Feeds(SweepProgress(self.prefect, NOW), state)
        feeds.wake(runs)
        return feeds


@pytest.fixture
def place(monkeypatch):
    return Place(monkeypatch)


def test_each_feed_is_read_once_and_wakes_the_runs_of_its_account_alone(place):
    place.services = {"a": Service(), "b": Service()}
    mine, second, other = place.run("a", "e-1"), place.run("a", "e-2"), place.run("b", "e-1")
    place.services["a"].publish("e-1")
    place.sweep(mine, second, other)
    assert place.prefect.resumed == [mine.id]
    assert [service.read for service in place.services.values()] == [1, 1]


def test_a_run_without_an_experiment_costs_no_reading(place):
    place.services = {"a": Service()}
    place.sweep(place.run("a"))
    assert place.services["a"].read == 0


def test_updates_whose_wake_up_failed_are_read_again(place):
    place.services = {"a": Service()}
    run = place.run("a", "e-1")
    place.services["a"].publish("e-1")
    place.prefect.stuck = {run.id}
    assert place.sweep(run).progress.failed
    place.prefect.stuck.clear()
    assert place.sweep(run).updates == 1
    assert place.prefect.resumed == [run.id]
    assert place.sweep(run).updates == 0


def test_a_refused_token_hides_no_other_account_and_is_named_with_its_runs(place):
    place.services = {"a": Unauthorized("401"), "b": Service()}
    refused, run = place.run("a", "e-1"), place.run("b", "e-2")
    place.services["b"].publish("e-2")
    feeds = place.sweep(refused, run)
    assert place.prefect.resumed == [run.id]
    (line,) = feeds.progress.problems
    assert "401" in line
    assert refused.name in line
    assert len(feeds.failures) == 1


@pytest.mark.parametrize(
    ("ahead", "updated", "woken"),
    [
        (timedelta(), NOW - 2 * MINUTE, True),  # it came after the run was suspended
        (timedelta(), NOW - 10 * MINUTE, False),  # the run has looked after its suspension
        (timedelta(), NOW - 5 * MINUTE - timedelta(seconds=5), True),  # the clocks may differ by so much
        (timedelta(seconds=30), NOW - 5 * MINUTE, False),  # by this machine's clock half a minute earlier
        (30 * DAY, NOW - 10 * MINUTE, True),  # a lab's clock says nothing of when the update came
    ],
)
def test_a_run_that_has_looked_since_an_update_is_not_woken_for_it(place, ahead, updated, woken):
    place.services = {"a": Service(ahead)}
    run = place.run("a", "e-1", suspended=NOW - 5 * MINUTE)
    place.services["a"].publish("e-1", updated)
    place.sweep(run)
    assert bool(place.prefect.resumed) is woken


@pytest.mark.parametrize(
    ("webhook", "suspended", "missed"),
    [({}, NOW - DAY, True), (None, NOW - DAY, False), ({}, NOW - 6 * MINUTE, False)],
    ids=["nothing has woken it", "it has no webhook", "something has woken it since the last sweep"],
)
def test_an_update_that_no_webhook_has_brought_is_noted(place, webhook, suspended, missed):
    place.services = {"a": Service(30 * DAY)}
    place.webhook = webhook
    run = place.run("a", "e-1", suspended=suspended)
    place.services["a"].publish("e-1", NOW - 20 * MINUTE)
    feeds = place.sweep(run, swept=NOW - 10 * MINUTE)
    assert bool(feeds.undelivered) is missed
    assert place.prefect.resumed == [run.id], "the sweep wakes it in any case"


def test_a_look_is_due_at_its_time(place):
    run = place.run("a")

    def due(minutes):
        run.state.state_details.pause_key = Look(1, NOW + minutes * MINUTE).new_key()
        return due_looks([run], NOW) == [run]

    assert due(-1)
    assert due(0.5), "the sweep runs every five minutes and some seconds"
    assert not due(2)
    run.state.state_details.pause_key = "1"
    assert due_looks([run], NOW + 30 * DAY) == []
