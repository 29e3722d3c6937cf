"""The blocks of a run, loaded by those who look after it: what is wrong with one is named, and nothing secret with it."""

import traceback
from contextlib import nullcontext
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect.blocks.core import Block
from prefect.client.schemas.objects import FlowRun
from pydantic import ValidationError

from prefect_assay.blocks import AssayCredentials, LocalArchive, S3Archive, SpendingPolicy
from prefect_assay.blocks.of_runs import archive_of, credentials_of, policy_of
from prefect_assay.errors import ConfigurationError
from prefect_assay.runs import block_references

BLOCKS = {
    "credentials": AssayCredentials(base_url="https://service.example", token="t"),
    "policy": SpendingPolicy(per_experiment_cents=1, per_campaign_cents=1),
    "archive": LocalArchive(root="/archive"),
}
DELETED = ValueError("Unable to find block document with ID 'x'")
LOADERS = {"credentials": credentials_of, "policy": policy_of, "archive": archive_of}


def a_run(**parameters):
    return FlowRun(id=uuid4(), flow_id=uuid4(), name="c 1/1", parameters=parameters)


@pytest.fixture
def saved(monkeypatch):
    """A run whose three references lead to blocks; returns it and what each of them gives."""
    ids = {name: str(uuid4()) for name in BLOCKS}
    gives = {ids[name]: block for name, block in BLOCKS.items()}

    def load_from_ref(_cls, ref, **_):
        found = gives[ref["block_document_id"]]
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(Block, "load_from_ref", classmethod(load_from_ref))
    run = a_run(**{name: {"$ref": {"block_document_id": id_}} for name, id_ in ids.items()})
    return run, lambda name, found: gives.update({ids[name]: found})


def invalid():
    """Prefect's error for a block that is saved but not valid, with its cause, which holds the input."""
    error = RuntimeError("Unable to load 'mine' due to failed validation")
    try:
        AssayCredentials.model_validate({"base_url": 1, "token": {"secret-token": "of mine"}})
    except ValidationError as cause:
        error.__cause__ = cause
    return error


def test_each_block_of_a_run_is_loaded(saved):
    run, gives = saved
    for name, load in LOADERS.items():
        assert load(run) is BLOCKS[name]
    bucket = S3Archive(bucket="results")
    gives("archive", bucket)
    assert archive_of(run) is bucket


@pytest.mark.parametrize("name", LOADERS)
def test_a_block_that_was_deleted_or_is_of_another_type_is_named(saved, name):
    run, gives = saved
    gives(name, DELETED)
    with pytest.raises(
        ConfigurationError, match=f"parameter {name} of run c 1/1: its block was deleted; save it again"
    ):
        LOADERS[name](run)
    gives(name, BLOCKS["policy" if name != "policy" else "archive"])
    with pytest.raises(ConfigurationError, match=f"parameter {name} of run c 1/1 is a block of another type"):
        LOADERS[name](run)


def test_a_deleted_block_that_was_saved_again_is_found_by_its_name(saved, monkeypatch):
    run, gives = saved
    gives("archive", DELETED)
    run.labels["assay.block.archive"] = "local-archive/results"
    document = LocalArchive(root="/archive")._to_block_document(
        name="results", block_schema_id=uuid4(), block_type_id=uuid4()
    )
    document.block_schema = LocalArchive._to_block_schema(block_type_id=uuid4())
    by_name = {("results", "local-archive"): document}
    client = SimpleNamespace(read_block_document_by_name=lambda name, slug: by_name[name, slug])
    monkeypatch.setattr(block_references, "get_client", lambda **_: nullcontext(client))
    assert archive_of(run).root == BLOCKS["archive"].root


@pytest.mark.parametrize("parameters", [{}, {"credentials": {"token": "secret-token"}}])
def test_a_parameter_without_a_saved_block_is_named(parameters):
    with pytest.raises(
        ConfigurationError, match="parameter credentials of run c 1/1 is not a saved block"
    ) as raised:
        credentials_of(a_run(**parameters))
    assert "secret-token" not in str(raised.value)


def test_an_invalid_block_is_named_with_its_field_and_without_its_values(saved):
    run, gives = saved
    gives("credentials", invalid())
    with pytest.raises(
        ConfigurationError, match=r"its block is not valid \(.*base_url.*save it again"
    ) as raised:
        credentials_of(run)
    shown = "".join(traceback.format_exception(raised.value))
    assert "secret-token" not in shown
    assert "of mine" not in shown
