"""The deployment `decide`: answers and cancels from a form, and follows what a person has canceled, and only that."""

from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.states import Cancelled, Crashed, Failed
from prefect.testing.utilities import prefect_test_harness
from prefect.utilities.callables import parameter_schema
from prefect.utilities.schema_tools.validation import validate

from assay_lab.testing import LocalLab
from prefect_assay.blocks import LocalArchive, S3Archive
from prefect_assay.campaigns.runs.states import REPLACED
from prefect_assay.campaigns.runs.tags import CAMPAIGN_TAG, LOOP_TAG
from prefect_assay.campaigns.stop import reopen_campaign
from prefect_assay.errors import Conflict, InputError, NotFound
from prefect_assay.flows import decide
from prefect_assay.flows.decide import Action
from prefect_assay.orders.ledger.campaign_log import CampaignLog, StartedKind
from prefect_assay.orders.payments.interfaces import normalize_address
from support.accounts import make_account, save_account
from support.campaign_logs import WrittenCampaign, started


@pytest.fixture(scope="module")
def server():
    with prefect_test_harness(server_startup_timeout=180), get_client(sync_client=True) as client:
        S3Archive.register_type_and_schema()
        yield client


@pytest.fixture(scope="module")
def lab():
    with LocalLab() as made:
        yield made


@pytest.fixture
def world(server, lab, tmp_path):
    """Blocks of a name of their own, whose archive is empty."""
    for document in server.read_block_documents_by_type(LocalArchive.get_block_type_slug()):
        server.delete_block_document(document.id)
    name = f"b-{uuid4().hex[:6]}"
    archive = LocalArchive(root=str(tmp_path))
    archive.save(name)
    policy = {"answer_ceiling_usd": 1_000}
    save_account(make_account(base_url=lab.base_url, token=lab.token, archive=archive, policy=policy), name)
    return SimpleNamespace(server=server, lab=lab, archive=archive, store=archive.get_store(), name=name)


def begun(world, what=StartedKind.CAMPAIGN):
    """A campaign of two orders with the blocks of this world."""
    service = normalize_address(world.lab.base_url)
    written = WrittenCampaign(world.store, "", f"c-{uuid4().hex[:6]}", service=service)
    record = started(written.ledgers, written.name, what, service=service)
    parameters = {"account": {"$block": f"assay-account/{world.name}"}}
    written.log = CampaignLog(world.store, "", written.name, what)
    written.log.start(record.model_copy(update={"parameters": parameters}))
    return written


def answer(written, action=Action.APPROVE, **changes):
    fields = {"question_id": "q1", "revision": 1, "amount_usd": 900, "person": "Ada"}
    return decide(written.name, action, **fields | changes)


def test_an_answer_of_the_form_is_recorded_for_exactly_the_question(world):
    written = begun(world)
    written.ask("q1", 90_000)
    for changes, error in (
        ({"amount_usd": 899.99}, Conflict),
        ({"amount_usd": None}, Conflict),
        ({"revision": 2}, Conflict),
        ({"revision": None}, InputError),
        ({"question_id": "q2"}, InputError),
        ({"action": Action.PAID}, InputError),
        ({"action": Action.CHOOSE, "experiment": "exp-1"}, InputError),
        ({"person": None}, InputError),
        ({"action": None}, InputError),
    ):
        with pytest.raises(error):
            answer(written, **changes)
    assert written.log.read().decisions == {}
    answer(written)
    answered = written.log.read().decisions["q1"][1]
    assert (answered.decision, answered.answerer, answered.how) == ("approve", "Ada", "the form of decide")


def test_the_recorded_account_bounds_an_answer_whatever_the_form_names(world):
    written = begun(world)
    written.ask("q1", 100_001)
    generous = make_account(archive=world.archive, policy={"answer_ceiling_usd": 10**7})
    generous = save_account(generous, f"{world.name}-generous")
    with pytest.raises(InputError, match="ceiling"):
        answer(written, amount_usd=1000.01, account=generous)


def test_a_campaign_is_canceled_from_the_form_and_found_in_the_archive_that_it_names(world, tmp_path):
    written = begun(world)
    with pytest.raises(NotFound):
        decide("another", Action.CANCEL, person="Ada")
    empty = LocalArchive(root=str(tmp_path / "empty"))
    with pytest.raises(NotFound):
        decide(written.name, Action.CANCEL, person="Ada", account=make_account(archive=empty))
    decide(written.name, Action.CANCEL, person="Ada")
    assert written.log.read().stopped.person == "Ada"
    assert written.log.read().settled


def test_an_id_in_two_archives_needs_the_account(world, tmp_path_factory):
    written = begun(world)
    world.archive.model_copy().save(f"{world.name}-again")  # a second block of the same archive
    other = LocalArchive(root=str(tmp_path_factory.mktemp("other")))
    other.save(f"{world.name}-other")
    rehearsed = WrittenCampaign(other.get_store(), "", written.name)
    with pytest.raises(InputError, match="select the account"):
        decide(written.name, Action.CANCEL, person="Ada")
    assert written.log.read().stopped is None
    account = make_account(base_url=world.lab.base_url, token=world.lab.token, archive=world.archive)
    decide(written.name, Action.CANCEL, person="Ada", account=save_account(account, f"{world.name}-chosen"))
    assert written.log.read().stopped is not None
    assert rehearsed.log.read().stopped is None


def a_run(world, written, state, *tags):
    @flow(name="campaign")
    def campaign():
        return None

    deployment = world.server.create_deployment(world.server.create_flow(campaign), name="decide-tests")
    run = world.server.create_flow_run_from_deployment(deployment, tags=list(tags))
    written.log.note_run(str(run.id), run.name)
    message = (state.message or "").format(deployment=deployment)
    world.server.set_flow_run_state(run.id, state.model_copy(update={"message": message}), force=True)
    return run


def follow(run):
    decide(canceled_run=str(run.id))


def test_cancel_of_a_run_cancels_its_campaign(world):
    written = begun(world)
    run = a_run(world, written, Cancelled(), CAMPAIGN_TAG + written.name)
    follow(run)
    stopped = written.log.read().stopped
    assert stopped.how == f"Cancel of run {run.name}"
    assert written.ledger(1).read().stopped is not None
    follow(run)  # as often as it comes
    assert [record.kind for record in written.log.records()].count("stopped") == 1


def test_an_archive_that_cannot_be_opened_holds_up_no_cancellation(world):
    written = begun(world)
    broken = f"a-{world.name}"  # read before the archive of the campaign
    S3Archive(bucket="b", profile=f"missing-{world.name}").save(broken)
    try:
        run = a_run(world, written, Cancelled(), CAMPAIGN_TAG + written.name)
        follow(run)
    finally:
        world.server.delete_block_document(
            world.server.read_block_document_by_name(broken, S3Archive.get_block_type_slug()).id
        )
    assert written.log.read().stopped is not None


def test_cancel_of_a_loops_run_cancels_the_loop(world):
    loop, other = begun(world, StartedKind.LOOP), begun(world)
    follow(a_run(world, loop, Cancelled(), LOOP_TAG + loop.name, CAMPAIGN_TAG + other.name))
    assert loop.log.read().stopped is not None
    assert other.log.read().stopped is None, "a campaign of the tag that is not a round of it"


@pytest.mark.parametrize(
    "state",
    [
        Cancelled(message="Runner is shutting down."),
        Cancelled(message="Deployment {deployment} no longer exists, so it was canceled"),
        Cancelled(message=REPLACED),
        Cancelled(message="Deployment concurrency limit reached."),
        Crashed(),
        Failed(),
    ],
    ids=[
        "its worker was stopped",
        "its deployment was made again",
        "replaced",
        "a limit",
        "crashed",
        "failed",
    ],
)
def test_what_no_person_has_canceled_goes_on(world, state):
    written = begun(world)
    follow(a_run(world, written, state, CAMPAIGN_TAG + written.name))
    assert written.log.read().is_open


def test_a_cancel_before_a_person_reopened_it_is_history(world):
    written = begun(world)
    run = a_run(world, written, Cancelled(), CAMPAIGN_TAG + written.name)
    follow(run)
    reopen_campaign(written.log, person="Ada")
    follow(run)
    assert written.log.read().is_open


def test_runs_that_have_carried_nothing_or_were_deleted_cancel_nothing(world):
    written = begun(world)
    strange = world.server.create_flow_run(decide, tags=[CAMPAIGN_TAG + written.name])
    world.server.set_flow_run_state(strange.id, Cancelled(), force=True)
    follow(strange)
    follow(SimpleNamespace(id=uuid4()))
    assert written.log.read().is_open


def test_the_form_offers_the_actions_and_takes_blocks_only_where_it_has_to():
    schema = parameter_schema(decide).model_dump_for_openapi()
    shown = sorted(schema["properties"], key=lambda name: schema["properties"][name]["position"])
    assert shown[:6] == ["campaign_id", "action", "question_id", "revision", "amount_usd", "experiment"]
    assert schema["definitions"]["Action"]["enum"] == [str(action) for action in Action]
    assert validate({"campaign_id": "c", "action": "cancel the campaign", "person": "Ada"}, schema) == []
    assert validate({"canceled_run": str(uuid4())}, schema) == []
