"""References to blocks among the parameters of runs, and what is said of a block that cannot be made."""

from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect.blocks.core import Block, UnknownBlockType
from prefect.client.schemas.objects import BlockDocument

from prefect_assay.blocks import AssayCredentials
from prefect_assay.blocks.block_references import (
    UNUSABLE,
    as_parameter,
    block_reference,
    fault_of,
    make_references,
)
from prefect_assay.errors import ConfigurationError


def test_a_block_goes_into_the_parameters_by_reference_and_without_its_secret():
    block = AssayCredentials(base_url="https://service.example", token="secret-token")
    with pytest.raises(ConfigurationError, match="is not saved"):
        as_parameter(block)
    block._block_document_id = uuid4()
    assert as_parameter(block) == {"$ref": {"block_document_id": str(block._block_document_id)}}
    assert as_parameter("c-1") == "c-1"


@pytest.mark.parametrize("nested", [True, False])
def test_both_forms_of_a_reference_are_read(nested):
    known = str(uuid4())
    parameters = {
        "archive": {"$ref": {"block_document_id": known} if nested else known},
        "campaign_id": "c-1",
    }
    run = SimpleNamespace(parameters=parameters)
    assert block_reference(run, "archive") == {"block_document_id": known}
    assert block_reference(run, "campaign_id") is None
    assert make_references(parameters).keys() == {"archive"}


def test_what_is_wrong_with_a_saved_block_is_said_without_its_secrets():
    kind = {"id": str(uuid4()), "name": "k", "slug": AssayCredentials.get_block_type_slug()}
    schema = {
        "id": str(uuid4()),
        "checksum": "c",
        "fields": {},
        "block_type_id": kind["id"],
        "block_type": kind,
    }
    document = {
        "id": str(uuid4()),
        "name": "saved",
        "data": {"base_url": "https://service.example", "token": {"value": "secret-token"}},
        "block_schema": schema,
        "block_schema_id": schema["id"],
        "block_type_id": kind["id"],
        "block_type": kind,
    }
    with pytest.raises(UNUSABLE) as caught:
        Block._load_from_block_document(BlockDocument.model_validate(document))
    fault = fault_of(caught.value)
    assert fault.startswith("is not valid (token: ")
    assert "secret-token" not in fault
    assert "not installed" in fault_of(UnknownBlockType("assay-newer-archive"))
    assert fault_of(RuntimeError("x")) == "cannot be loaded"
