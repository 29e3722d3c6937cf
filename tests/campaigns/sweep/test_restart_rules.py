"""The rules by which another run is started, without a server: whose campaign, when, and what a cancellation means."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.states import Cancelled, Failed

from prefect_assay.archive import LocalStore
from prefect_assay.blocks import LocalArchive
from prefect_assay.campaigns.runs.states import REPLACED
from prefect_assay.campaigns.sweep.open_campaigns import OpenCampaign, SavedArchive, open_archive
from prefect_assay.campaigns.sweep.restart import canceled_run, is_due, is_restartable
from prefect_assay.campaigns.sweep.watermarks import SeenArchive, SweepState
from prefect_assay.errors import ArchiveUnavailable
from prefect_assay.orders.ledger import Ledgers
from prefect_assay.orders.ledger.campaign_log import (
    CampaignLog,
    CampaignState,
    Ran,
    Started,
    StartedKind,
)
from support.campaign_logs import SERVICE, started

NOW = datetime.now(UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@pytest.fixture
def archive(tmp_path):
    block = LocalArchive(root=str(tmp_path))
    block._block_document_id = uuid4()
    store = LocalStore(tmp_path)
    ledgers = Ledgers.open(store, "", SERVICE, "org-1")
    accounts = frozenset({str(uuid4())})
    return SavedArchive("assay-local-archive/results", block, store, ledgers.archive_id, accounts)


def campaign_of(archive, what=StartedKind.CAMPAIGN, **changes):
    log = CampaignLog(archive.store, "", "c-1", what)
    base = started(Ledgers.open(archive.store, "", SERVICE, "org-1"), "c-1", what).model_dump(
        exclude={"id", "at", "by"}
    )
    log.start(Started(**(base | changes)))
    return OpenCampaign(archive, log)


def run_of(archive, state, *, tags=("assay-campaign:c-1",), block=None):
    reference = {"$ref": {"block_document_id": str(block or next(iter(archive.accounts)))}}
    parameters = {"account": reference, "assay": {}}
    return FlowRun(
        id=uuid4(),
        flow_id=uuid4(),
        deployment_id=uuid4(),
        tags=list(tags),
        state=state,
        parameters=parameters,
    )


@pytest.mark.parametrize(
    ("changes", "home", "mine"),
    [
        ({}, "home-1", True),
        ({}, "home-2", False),
        ({"home": None}, "home-1", False),
        ({"deployment": None}, "home-1", False),
        ({"deployment": "design-build-test/assay-design-build-test"}, "home-1", False),
    ],
    ids=["own", "of another home", "of no home", "without a deployment", "a loop's round"],
)
def test_a_home_starts_its_own_campaigns_alone(archive, changes, home, mine):
    assert is_restartable(campaign_of(archive, **changes), home) is mine


def test_a_campaign_that_is_stopped_or_over_is_not_started(archive):
    campaign = campaign_of(archive)
    campaign.log.stop("ada", "by command")
    assert not is_restartable(campaign, "home-1")
    campaign.log.reopen("ada")
    assert is_restartable(campaign, "home-1")
    campaign.log.finish("over", complete=True)
    assert not is_restartable(campaign, "home-1")


def state_with(*restarted_ago, first_ago=10 * HOUR):
    """A campaign whose runs were recorded so long ago; all but the first were started by the sweep."""
    runs = {"r-0": Ran(run="r-0", name="r-0", at=NOW - first_ago)}
    for number, ago in enumerate(restarted_ago, start=1):
        name = f"r-{number}"
        runs[name] = Ran(run=name, name=name, restarted=True, at=NOW - ago)
    return CampaignState(runs=runs)


@pytest.mark.parametrize(
    ("restarted_ago", "due"),
    [
        ((), True),
        ((4 * MINUTE,), False),
        ((5 * MINUTE,), True),
        ((HOUR, 9 * MINUTE), False),
        ((HOUR, 10 * MINUTE), True),
        ((3 * HOUR, 2 * HOUR, HOUR, 39 * MINUTE), False),
        ((3 * HOUR, 2 * HOUR, HOUR, 40 * MINUTE), True),
        (tuple(number * HOUR for number in range(20, 5, -1)), True),  # the longest pause is six hours
        (tuple(number * HOUR for number in range(20, 4, -1)), False),
        ((26 * HOUR, 25 * HOUR), True),
        ((-HOUR,), True),  # recorded by a clock that was wrong
    ],
)
def test_pauses_grow_with_the_restarts_of_a_day(restarted_ago, due):
    assert is_due(state_with(*restarted_ago), NOW) is due


def test_a_start_has_ten_minutes_to_record_its_run(archive):
    state = campaign_of(archive).log.read()
    assert not is_due(state, datetime.now(UTC) + 9 * MINUTE)
    assert is_due(state, datetime.now(UTC) + 11 * MINUTE)


STOPPED_RUNNER = State(type=StateType.CANCELLED, message="Runner is shutting down.")


@pytest.mark.parametrize(
    ("state", "canceled"),
    [
        (Cancelled(), True),
        (Cancelled(message="not needed"), True),
        (STOPPED_RUNNER, False),
        (Cancelled(message=REPLACED), False),
        (Failed(), False),
        (State(type=StateType.CANCELLING), False),
    ],
    ids=["by a person", "with a message", "stopped worker", "replaced", "failed", "being canceled"],
)
def test_only_a_person_cancels_a_campaign(archive, state, canceled):
    campaign = campaign_of(archive)
    campaign.runs = [run_of(archive, state)]
    assert (canceled_run(campaign) is not None) is canceled


def test_a_deployment_that_is_gone_cancels_nothing(archive):
    campaign = campaign_of(archive)
    run = run_of(archive, None)
    run.state = Cancelled(message=f"Deployment {run.deployment_id} no longer exists")
    campaign.runs = [run]
    assert canceled_run(campaign) is None


def test_a_canceled_run_stops_nothing_that_was_opened_again_since(archive):
    campaign = campaign_of(archive)
    campaign.runs = [run_of(archive, Cancelled())]
    assert canceled_run(campaign) is not None
    campaign.log.stop("ada", "by command")
    campaign.log.reopen("ada")
    assert canceled_run(campaign) is None


def test_a_cancellation_counts_although_the_clock_of_the_start_was_ahead(archive):
    campaign = campaign_of(archive, at=NOW + HOUR)
    campaign.runs = [run_of(archive, Cancelled())]
    assert canceled_run(campaign) is not None


def test_a_run_carries_the_campaign_of_its_own_archive(archive):
    campaign = campaign_of(archive)
    assert campaign.is_carried_by(run_of(archive, None))
    assert not campaign.is_carried_by(run_of(archive, None, block=uuid4()))
    assert not campaign.is_carried_by(run_of(archive, None, tags=("assay-campaign:c-2",)))


class Variables:
    """Prefect's variables."""

    def __init__(self):
        self.kept = {}

    def create_variable(self, variable):
        self.kept[variable.name] = variable.value

    def update_variable(self, variable):
        self.kept[variable.name] = variable.value


def test_an_archive_that_was_there_and_is_empty_now_is_away(archive, tmp_path):
    name, state = archive.name, SweepState(Variables())
    assert open_archive(name, archive.block, state).archive_id == archive.archive_id
    assert state.seen_archive(name) == SeenArchive(block=name, archive_id=archive.archive_id)
    away = LocalArchive(root=str(tmp_path / "not-mounted"))
    with pytest.raises(ArchiveUnavailable, match="is its folder mounted"):
        open_archive(name, away, state)
    assert open_archive("assay-local-archive/new", away, state) is None, "nothing was ever begun in it"
    assert not (tmp_path / "not-mounted").exists()
    again = SweepState(state.client, dict(state.client.kept))
    assert again.seen_archive(name) == state.seen_archive(name)
