"""A run that was suspended under another version wakes: what it finds of itself is read tolerantly.

The samples are what version 0 of each thing looks like, as stored. They are never edited: a change of the code that
cannot read them any more would end the runs that wait with them.
"""

import inspect
import json

import pytest
from pydantic import ValidationError

from prefect_assay import flows
from prefect_assay.archive import LocalStore, archive_version
from prefect_assay.blocks import AssayCredentials, LocalArchive, SpendingPolicy
from prefect_assay.errors import ArchiveError, ConfigurationError
from prefect_assay.models.archived import Manifest
from prefect_assay.models.spec import Plan
from prefect_assay.tasks import collate

SPEC = {
    "experiment_type": "affinity",
    "method": "bli",
    "target_id": "8f14e45f-ceea-467f-a8a5-0123456789ab",
    "sequences": {"design": {"aa_string": "MKTAYIAKQR", "control": False, "metadata": None}},
    "n_replicates": None,
    "antigen_concentrations": None,
    "parameters": None,
}
SHARED = {
    "credentials": AssayCredentials(base_url="https://service.example", token="t"),
    "policy": SpendingPolicy(per_experiment_cents=1, per_campaign_cents=1),
    "archive": LocalArchive(root="/archive"),
    "payment_method": "x402-exact",
    "wallet": None,
    "webhook": None,
    "request_quote": False,
    "deadline_days": 45,
}
PARAMETERS = {
    "experiment": {
        **SHARED,
        "spec": SPEC,
        "campaign_id": "c-1",
        "batch_index": 0,
        "batch_count": 2,
        "limit_cents": 100_000,
        "campaign_limit_cents": 200_000,
        "poll_seconds": 300.0,
    },
    "campaign": {
        **SHARED,
        "designs": ">a\nMKT",
        "assay": {"experiment_type": "affinity", "method": "bli", "target": "EGFR"},
        "campaign_id": "c-1",
        "sequences_per_experiment": 96,
        "name_column": None,
        "sequence_column": None,
        "keep_native": False,
        "designs_name": None,
        "poll_seconds": 300.0,
    },
    "design_build_test": {
        **SHARED,
        "source": "/designs",
        "loop_id": "loop",
        "assay": {"experiment_type": "affinity", "method": "bli", "target": "EGFR"},
        "max_rounds": 10,
        "goal_kd_nM": None,
        "designer": None,
        "sequences_per_experiment": 96,
        "name_column": None,
        "sequence_column": None,
        "keep_native": False,
        "poll_seconds": 300.0,
    },
}
PLAN = {
    "plan_schema": 1,
    "campaign_id": "c-1",
    "source": "",
    "assay": {"experiment_type": "affinity", "method": "bli", "target": "EGFR"},
    "target_name": "EGFR",
    "experiments": [{"order_key": "0123456789abcdef0123", "batch_index": 0, "spec": SPEC}],
    "duplicates": [],
}
MANIFEST = {
    "manifest_schema": 1,
    "experiment_id": "e-1",
    "experiment_code": "ORG-001-001",
    "campaign_id": "c-1",
    "version": 1,
    "results_status": "all",
    "created_at": "2026-01-01T00:00:00Z",
    "files": [{"path": "results.csv", "size": 1, "sha256": "0" * 64, "content_type": "text/csv"}],
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_parameters_of_this_version_are_read(name):
    flow = getattr(flows, name)
    assert PARAMETERS[name].keys() <= flow.validate_parameters(PARAMETERS[name]).keys()


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_parameter_of_a_newer_version_is_named_with_the_step(name):
    with pytest.raises(ConfigurationError, match=r"does not know colour among .*upgrade prefect-assay"):
        getattr(flows, name).validate_parameters(PARAMETERS[name] | {"colour": "red"})


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_parameter_that_an_older_version_did_not_know_has_a_default(name):
    """Only what version 0 stored may be without one."""
    parameters = inspect.signature(getattr(flows, name).fn).parameters.values()
    required = {p.name for p in parameters if p.default is inspect.Parameter.empty}
    assert required <= PARAMETERS[name].keys()


def test_a_misspelt_parameter_of_a_call_is_refused_as_ever():
    with pytest.raises(TypeError, match="colour"):
        flows.experiment(**PARAMETERS["experiment"], colour="red")


@pytest.mark.parametrize("kind", [AssayCredentials, SpendingPolicy, LocalArchive])
def test_a_block_that_a_newer_version_has_saved_is_read(kind):
    values = {"base_url": "https://service.example", "token": "t", "root": "/archive"}
    values |= {"per_experiment_cents": 1, "per_campaign_cents": 1}
    known = {name: value for name, value in values.items() if name in kind.model_fields}
    assert kind.model_validate(known | {"colour": "red"})


def test_a_plan_is_read_whatever_a_newer_version_has_added_around_its_specifications():
    stored = json.loads(json.dumps(PLAN))
    assert Plan.model_validate(stored).order_keys == ("0123456789abcdef0123",)
    stored["colour"] = stored["experiments"][0]["colour"] = "red"
    assert Plan.model_validate(stored) == Plan.model_validate(PLAN)
    stored["experiments"][0]["spec"]["colour"] = "red"
    with pytest.raises(ValidationError):
        Plan.model_validate(stored)


def test_a_plan_with_an_unknown_specification_orders_nothing(tmp_path):
    stored = json.loads(json.dumps(PLAN))
    stored["experiments"][0]["spec"]["colour"] = "red"
    from datetime import UTC, datetime

    from prefect_assay.archive import Document

    archive_version(
        LocalStore(tmp_path),
        "",
        campaign_id="c-1",
        experiment_id="c-1",
        experiment_code=collate.PLAN_CODE,
        results_status="none",
        documents=[
            Document(path="plan.json", content_type="application/json", body=json.dumps(stored).encode())
        ],
        now=datetime.now(UTC),
    )
    with pytest.raises(ArchiveError, match=r"no readable plan.*nothing new was ordered"):
        collate.kept_plan(LocalArchive(root=str(tmp_path)), "c-1")


def test_a_manifest_is_read_whatever_a_newer_version_has_added():
    stored = json.loads(json.dumps(MANIFEST))
    stored["colour"] = stored["files"][0]["colour"] = "red"
    assert Manifest.model_validate(stored) == Manifest.model_validate(MANIFEST)
