"""A run whose blocks were deleted or are not valid: what it goes on without, what it asks for, how one comes back."""

from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect.blocks.core import Block
from prefect.client.schemas.objects import BlockDocument
from prefect.exceptions import ObjectNotFound, ParameterTypeError
from prefect.states import Suspended

from prefect_assay.blocks import AssayCredentials, LocalArchive, SpendingPolicy
from prefect_assay.errors import BlockMissing, BlockUnfit, ConfigurationError
from prefect_assay.flows import campaign, design_build_test, experiment
from prefect_assay.runs import block_references as run_blocks
from prefect_assay.runs import durable, tags
from prefect_assay.runs.block_references import Unusable
from prefect_assay.runs.transient_failures import RETRY_KEY, NeededBlock, needed_block, retry_key
from prefect_assay.sweeping import stuck_runs as attention

CREDENTIALS = AssayCredentials(base_url="https://service.example", token="t")
POLICY = SpendingPolicy(per_experiment_cents=1, per_campaign_cents=1)
ARCHIVE = LocalArchive(root="/archive")
SPEC = {"experiment_type": "thermostability", "sequences": {"d": {"aa_string": "MKTAYIAKQR"}}}
GIVEN = {"spec": SPEC, "campaign_id": "c-1", "credentials": CREDENTIALS, "policy": POLICY, "archive": ARCHIVE}


def reference():
    return {"$ref": {"block_document_id": str(uuid4())}}


def run(*tags, **labels):
    labels = {f"assay.block.{name}": block for name, block in labels.items()}
    return SimpleNamespace(id=uuid4(), tags=["assay", *tags], labels=labels, parameters={})


@pytest.fixture
def deleted(monkeypatch):
    """No block of any reference is there."""

    def load_from_ref(_cls, ref, **_):
        raise ValueError(f"Unable to find block document with ID {ref}")

    monkeypatch.setattr(Block, "load_from_ref", classmethod(load_from_ref))
    monkeypatch.setattr(durable, "unusable", Unusable)
    monkeypatch.setattr(run_blocks, "get_client", lambda **_: Prefect())


class Prefect:
    def __init__(self, *documents):
        self.labels, self.parameters, self.documents = {}, {}, documents

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def read_block_document(self, wanted):
        for made in self.documents:
            if made["id"] == str(wanted):
                return BlockDocument.model_validate(made)
        raise ObjectNotFound(http_exc=Exception("404"))

    def read_block_document_by_name(self, name, slug):
        for made in self.documents:
            if (made["name"], made["block_type"]["slug"]) == (name, slug):
                return BlockDocument.model_validate(made)
        raise ObjectNotFound(http_exc=Exception("404"))

    def update_flow_run_labels(self, _run_id, labels):
        self.labels |= labels

    def update_flow_run(self, _run_id, *, parameters):
        self.parameters |= parameters


@pytest.fixture
def prefect(monkeypatch):
    server = Prefect()
    monkeypatch.setattr(run_blocks, "get_client", lambda **_: server)
    monkeypatch.setattr(tags, "get_client", lambda **_: server)
    monkeypatch.setattr(run_blocks, "create_markdown_artifact", lambda **_: None)
    monkeypatch.setattr(run_blocks, "this_run", run)
    monkeypatch.setattr("prefect.blocks.core.emit_event", lambda **_: None)  # it would start a server
    return server


def filled(run, gone, *, later=("wallet", "webhook")):
    arguments = GIVEN | dict.fromkeys(gone)
    unusable = {name: Unusable({"block_document_id": str(uuid4())}) for name in gone}
    return run_blocks.with_saved_blocks(run, arguments, unusable, required_later=later)


@pytest.mark.parametrize("flow", [experiment, campaign, design_build_test], ids=lambda flow: flow.name)
def test_a_deleted_block_does_not_end_a_run_before_it_begins(deleted, flow):
    parameters = {name: reference() for name in ("credentials", "policy", "archive", "wallet", "webhook")}
    own = GIVEN if flow is experiment else {"assay": {"experiment_type": "thermostability"}}
    own |= {"designs": ">a\nMKT"} if flow is campaign else {}
    own |= {"source": "/designs", "loop_id": "l"} if flow is design_build_test else {}
    known = flow.validate_parameters(own | parameters)
    assert flow.gone.keys() == parameters.keys()
    assert (known["wallet"], known["webhook"]) == (None, None)
    assert flow.validate_parameters(own | {n: GIVEN[n] for n in ("credentials", "policy", "archive")})
    assert flow.gone == {}


def document(block, **data):
    """As `POST /block_documents/filter` answers it."""
    kind = {"id": str(uuid4()), "name": type(block).__name__, "slug": block.get_block_type_slug()}
    schema = {
        "id": str(uuid4()),
        "checksum": "c",
        "fields": {},
        "block_type_id": kind["id"],
        "block_type": kind,
    }
    return {
        "id": str(uuid4()),
        "name": "saved",
        "data": data,
        "block_schema": schema,
        "block_schema_id": schema["id"],
        "block_type_id": kind["id"],
        "block_type": kind,
    }


def test_other_wrong_parameters_end_it_as_before(deleted):
    with pytest.raises(Exception, match="campaign_id"):
        experiment.validate_parameters({**GIVEN, "campaign_id": {}})
    with pytest.raises(ParameterTypeError):
        experiment.validate_parameters({**GIVEN, "batch_index": -1})


def test_a_run_without_a_wallet_goes_on_until_it_needs_one(prefect):
    arguments = filled(run("assay-experiment:e", wallet="assay-x402-wallet/purse"), ["wallet"])
    assert arguments["wallet"] is None
    run_blocks.require_blocks("webhook")
    with pytest.raises(
        BlockMissing, match=r"assay-x402-wallet/purse of this run's parameter wallet .* the run goes on"
    ) as caught:
        run_blocks.require_blocks("webhook", "wallet")
    assert caught.value.retriable
    assert run_blocks.passed_on("webhook", None) is None
    assert "block_document_id" in run_blocks.passed_on("wallet", None)["$ref"]


def test_a_run_without_its_credentials_asks_at_once(prefect, monkeypatch):
    waits = []
    monkeypatch.setattr(run_blocks, "outlast", lambda step, **_: waits.append(step))
    filled(run("assay-experiment:e", credentials="assay-credentials/mine"), ["credentials"])
    with pytest.raises(BlockMissing, match="assay-credentials/mine"):
        waits[0]()


def test_a_run_that_has_never_waited_fails_and_so_does_a_block_without_a_known_name(prefect):
    with pytest.raises(BlockMissing, match="parameter policy"):
        filled(run(policy="assay-spending-policy/caps"), ["policy"])
    with pytest.raises(ConfigurationError, match=r"parameter policy .* name is not known") as caught:
        filled(run("assay-experiment:e"), ["policy"])
    assert not caught.value.retriable


def test_a_block_that_was_saved_again_takes_its_place_in_the_run(prefect):
    saved = document(CREDENTIALS, base_url=CREDENTIALS.base_url, token="t")
    prefect.documents = [saved]
    arguments = filled(run("assay-experiment:e", credentials="assay-credentials/saved"), ["credentials"])
    assert arguments["credentials"].base_url == CREDENTIALS.base_url
    assert prefect.parameters["credentials"] == {"$ref": {"block_document_id": saved["id"]}}


def test_a_run_waits_for_a_block_that_a_form_has_saved_with_fields_that_are_refused(prefect, monkeypatch):
    waits = []
    monkeypatch.setattr(run_blocks, "outlast", lambda step, **_: waits.append(step))
    policy = document(POLICY, per_experiment_cents=1, per_campaign_cents=1, machine_payments=True)
    credentials = document(CREDENTIALS, base_url="https://service.example", token={"value": "secret-token"})
    prefect.documents = [policy, credentials]
    references = {
        name: {"$ref": {"block_document_id": made["id"]}}
        for name, made in (("policy", policy), ("credentials", credentials))
    }

    def load_from_ref(_cls, ref, **_):
        return Block._load_from_block_document(prefect.read_block_document(ref["block_document_id"]))

    monkeypatch.setattr(Block, "load_from_ref", classmethod(load_from_ref))
    known = experiment.validate_parameters(GIVEN | references)
    assert experiment.gone.keys() == references.keys()
    run_blocks.with_saved_blocks(run("assay-experiment:e"), known, experiment.gone, required_later=())
    with pytest.raises(BlockMissing, match=r"assay-credentials/saved .* \(token: ") as caught:
        waits[0]()
    assert "secret-token" not in str(caught.value)
    assert not run_blocks.is_saved(
        prefect, "assay-spending-policy/saved"
    )  # else each sweep would wake the run

    policy["data"]["rolling_cents"] = 1
    assert run_blocks.is_saved(prefect, "assay-spending-policy/saved")
    assert (
        experiment.validate_parameters(GIVEN | {"policy": references["policy"]})["policy"].rolling_cents == 1
    )


def test_a_block_of_a_type_that_is_not_installed_is_waited_for(prefect, monkeypatch):
    """A newer version's: Prefect's error for it is neither ValueError nor RuntimeError."""
    saved = document(ARCHIVE, root="/archive")
    newer = {**saved["block_type"], "slug": "assay-newer-archive"}
    saved |= {"block_type": newer, "block_schema": {**saved["block_schema"], "block_type": newer}}
    reference = {"$ref": {"block_document_id": saved["id"]}}
    prefect.documents = [saved]

    def load_from_ref(_cls, ref, **_):
        return Block._load_from_block_document(prefect.read_block_document(ref["block_document_id"]))

    monkeypatch.setattr(Block, "load_from_ref", classmethod(load_from_ref))
    known = experiment.validate_parameters(GIVEN | {"archive": reference})
    assert experiment.gone["archive"].block == "assay-newer-archive/saved"
    assert not run_blocks.is_saved(prefect, "assay-newer-archive/saved")
    with pytest.raises(
        BlockMissing, match=r"assay-newer-archive/saved .* is of a type that is not installed"
    ):
        run_blocks.with_saved_blocks(run(), known, experiment.gone, required_later=())
    with pytest.raises(ConfigurationError, match="is of a type that is not installed"):
        run_blocks.block_of(
            SimpleNamespace(name="r", parameters={"archive": reference}, labels={}), "archive"
        )


def test_the_names_of_its_blocks_are_noted_once(prefect):
    archive = ARCHIVE.model_copy()
    archive._block_document_name = "results"
    began = run()
    run_blocks.with_saved_blocks(began, {**GIVEN, "archive": archive}, {}, required_later=())
    assert prefect.labels == {"assay.block.archive": "assay-local-archive/results"}
    began.labels, prefect.labels = prefect.labels, {}
    run_blocks.with_saved_blocks(began, {**GIVEN, "archive": archive}, {}, required_later=())
    assert prefect.labels == {}


@pytest.mark.parametrize("kind", [BlockMissing, BlockUnfit])
def test_suspension_key_and_report_name_the_block(kind):
    error = kind("gone", parameter="wallet", block="assay-x402-wallet/purse")
    state = Suspended(pause_key=f"{retry_key(error, 'steps')}:{uuid4()}")
    waits = SimpleNamespace(id=uuid4(), name="c-1", state=state, tags=["assay-again:5"])
    assert needed_block(waits) == NeededBlock("wallet", "assay-x402-wallet/purse", kind is BlockMissing)
    (problem,) = attention.find_blocked_runs([waits])
    line = problem.line
    assert "run c-1 waits for the block assay-x402-wallet/purse of its parameter wallet" in line
    other = SimpleNamespace(
        id=uuid4(), name="c-2", state=Suspended(pause_key=f"{RETRY_KEY}steps-k:1"), tags=["assay-again:5"]
    )
    assert needed_block(other) is None
    assert "5 times in a row" in attention.find_blocked_runs([other])[0].line
