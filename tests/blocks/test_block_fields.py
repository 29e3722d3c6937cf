"""Fields of blocks: unknown ones are refused, Prefect's own and those of other versions are not."""

import traceback
from uuid import uuid4

import pytest
from prefect.blocks.core import Block
from prefect.client.schemas.objects import BlockDocument, BlockSchema, BlockType
from pydantic import TypeAdapter, ValidationError

from prefect_assay.blocks import (
    Archive,
    AssayCredentials,
    LocalArchive,
    S3Archive,
    SharedPaymentTokens,
    SpendingPolicy,
    WebhookEndpoint,
    X402Wallet,
)

CANARY = "canary-canary-canary-canary-canary-canary"
FIELDS = {
    AssayCredentials: {"base_url": "https://lab.example", "token": CANARY},
    SpendingPolicy: {"per_experiment_usd": 0.01, "per_campaign_usd": 0.02},
    X402Wallet: {"private_key": CANARY, "networks": ["eip155:8453"], "assets": ["0xa"], "pay_to": ["0xb"]},
    SharedPaymentTokens: {
        "issuer_url": "https://issuer.example",
        "issuer_key": CANARY,
        "network_ids": ["lab"],
    },
    WebhookEndpoint: {"url": "https://hooks.example", "signing_key": CANARY},
    LocalArchive: {"root": "/archive"},
    S3Archive: {"bucket": "b"},
}
blocks = pytest.mark.parametrize("kind", FIELDS, ids=lambda kind: kind.__name__)


@pytest.fixture(autouse=True)
def no_events(monkeypatch):
    """Loading a block sends an event, for which Prefect would start a server."""
    monkeypatch.setattr("prefect.blocks.core.emit_event", lambda **_: None)


def saved(kind, **data):
    """The document of a saved block, as the Prefect API gives it."""
    block_type = BlockType(id=uuid4(), name=kind._block_type_name, slug=kind._block_type_slug)
    schema = BlockSchema(
        id=uuid4(), checksum="", fields={}, block_type_id=block_type.id, block_type=block_type
    )
    return BlockDocument(
        id=uuid4(),
        name="mine",
        data=data,
        block_schema=schema,
        block_schema_id=schema.id,
        block_type=block_type,
        block_type_id=block_type.id,
    )


@blocks
def test_an_unknown_field_is_refused_and_its_value_not_shown(kind):
    with pytest.raises(
        ValidationError, match=f"{kind.__name__} has no field 'path'; its fields are"
    ) as caught:
        kind(**FIELDS[kind], path=CANARY)
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_an_archive_does_not_go_to_the_default_folder_in_silence():
    with pytest.raises(ValidationError, match="has no field 'path'; its fields are root, prefix"):
        LocalArchive(path="/archive")
    with pytest.raises(ValidationError, match="has no field 'path'"):
        TypeAdapter(Archive).validate_python({"path": "/archive"})


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (WebhookEndpoint, {"url": "https://hooks.example", "signing_key": "hunter2"}),
        (AssayCredentials, {"tokn": "hunter2"}),
        (S3Archive, {"secret_access_key": {"value": "hunter2"}}),
    ],
)
def test_a_secret_that_is_refused_is_not_shown(kind, fields):
    with pytest.raises(ValidationError) as caught:
        kind(**fields)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


@blocks
@pytest.mark.parametrize("loader", ["own", "any"])
def test_a_saved_block_loads_and_keeps_prefects_own_fields(kind, loader):
    document = saved(kind, **FIELDS[kind])
    block = (kind if loader == "own" else Block)._from_block_document(document)
    assert type(block) is kind
    assert (block._block_document_id, block._block_document_name) == (document.id, "mine")
    again = kind.model_validate(block.model_dump(context={"include_secrets": True}))
    assert again.model_dump() == kind(**FIELDS[kind]).model_dump()
    assert TypeAdapter(kind).validate_python(block.model_dump(context={"include_secrets": True}))


@blocks
def test_a_block_that_another_version_has_saved_loads(kind):
    block = Block._from_block_document(saved(kind, **FIELDS[kind], of_another_version=1))
    assert type(block) is kind
    assert "of_another_version" not in block.model_dump()
