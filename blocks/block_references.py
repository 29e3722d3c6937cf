"""References from a run's parameters to saved blocks. Prefect stores only a block's id."""

from collections.abc import Mapping
from typing import Any, Final

from prefect.blocks.core import Block, UnknownBlockType
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import BlockDocument, FlowRun
from prefect.exceptions import ObjectNotFound
from pydantic import BaseModel, ValidationError

from prefect_assay.errors import ConfigurationError

# What Prefect raises for a saved block that it cannot make; the last is not a ValueError, such as for a newer version's block.
UNUSABLE: Final = (ValueError, RuntimeError, UnknownBlockType)


def list_documents(
    client: SyncPrefectClient, slug: str, *, include_secrets: bool = False
) -> list[BlockDocument]:
    """Read the saved blocks of a type; none of one that was never registered."""
    try:
        return client.read_block_documents_by_type(slug, include_secrets=include_secrets)
    except ObjectNotFound:
        return []


def as_parameter(value: Any) -> Any:
    """Convert a value for a run's parameters: blocks become references, models JSON; no secret is stored.

    Raises:
        ConfigurationError: the block is not saved.
    """
    if isinstance(value, Block):
        document_id = value._block_document_id  # noqa: SLF001 - Prefect has no public name for it
        if document_id is None:
            raise ConfigurationError(
                f"the {type(value).__name__} block of this run is not saved; save it under a name and choose it there"
            )
        return {"$ref": {"block_document_id": str(document_id)}}
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return value


def make_references(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the references to saved blocks among the parameters."""
    return {
        name: value["$ref"]
        for name, value in parameters.items()
        if isinstance(value, dict) and "$ref" in value
    }


def name_of(block: Block) -> str | None:
    """Return the name under which a block is saved."""
    return block._block_document_name  # noqa: SLF001 - Prefect has no public name for it


def block_reference(run: FlowRun, parameter: str) -> dict[str, Any] | None:
    """Return a run's reference to a block as `load_from_ref` takes it; None if the block was not saved."""
    reference = make_references(run.parameters).get(parameter)
    if reference is None or isinstance(reference, dict):
        return reference
    return {"block_document_id": str(reference)}


def fault_of(error: Exception) -> str:
    """Return why Prefect could not make a block of what is saved: fields and their problems, never their values."""
    if isinstance(error, UnknownBlockType):
        return "is of a type that is not installed here"
    cause = error if isinstance(error, ValidationError) else error.__cause__
    if not isinstance(cause, ValidationError):
        return "cannot be loaded"
    faults = [
        ": ".join(
            filter(None, (".".join(map(str, fault["loc"])), fault["msg"].removeprefix("Value error, ")))
        )
        for fault in cause.errors(include_input=False, include_url=False, include_context=False)
    ]
    return f"is not valid ({'; '.join(faults)})"
