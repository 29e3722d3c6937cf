"""Keeps the name of each block of a run in its labels, because Prefect stores only its id.

A block that is deleted and saved again has another id, and is found by its name. A block that is missing or not valid
leaves its parameter empty; the step that needs it waits.
"""

import inspect
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, cast, get_args, get_type_hints
from uuid import UUID

from prefect.artifacts import create_markdown_artifact
from prefect.blocks.core import Block, UnknownBlockType
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import BlockDocument, FlowRun
from prefect.exceptions import ObjectNotFound
from prefect.flows import Flow
from pydantic import BaseModel, ValidationError

from prefect_assay.errors import BlockMissing, ConfigurationError
from prefect_assay.runs.suspend import outlast, this_run
from prefect_assay.runs.tags import BLOCK_LABEL, set_labels
from prefect_assay.runs.transient_failures import retry_count, was_suspended

# Longer than any deadline; a run whose block never comes back ends then.
_PATIENCE: Final = timedelta(days=400)
_DELETED: Final = "was deleted"
# What Prefect raises for a saved block that it cannot make; the last is no ValueError, such as for a newer version's block.
UNUSABLE: Final = (ValueError, RuntimeError, UnknownBlockType)


@dataclass(frozen=True)
class Unusable:
    """A reference to a block that was deleted, or that is not valid: then with the block's `type/name`."""

    reference: Any
    block: str | None = None


@dataclass(frozen=True)
class _Missing:
    reference: Any
    error: ConfigurationError


_missing: ContextVar[Mapping[str, _Missing]] = ContextVar("assay_missing_blocks")


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


def references(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the references to saved blocks among the parameters."""
    return {
        name: value["$ref"]
        for name, value in parameters.items()
        if isinstance(value, dict) and "$ref" in value
    }


def name_of(block: Block) -> str | None:
    """Return the name under which a block is saved."""
    return block._block_document_name  # noqa: SLF001 - Prefect has no public name for it


def _id_of(reference: Any) -> UUID | None:
    document_id = reference.get("block_document_id") if isinstance(reference, dict) else reference
    try:
        return UUID(str(document_id))
    except ValueError:  # not an id
        return None


def block_reference(run: FlowRun, parameter: str) -> dict[str, Any] | None:
    """Return a run's reference to a block as `load_from_ref` takes it; None if the block was not saved."""
    reference = references(run.parameters).get(parameter)
    if reference is None or isinstance(reference, dict):
        return reference
    return {"block_document_id": str(reference)}


def has_block(run: FlowRun, parameter: str, block: Block, saved_as: str) -> bool:
    """Return True if a run's parameter is this saved block, by its id or by its `type/name`."""
    document_id = block._block_document_id  # noqa: SLF001 - Prefect has no public name for it
    reference = references(run.parameters).get(parameter)
    same = document_id is not None and _id_of(reference) == document_id
    return same or run.labels.get(BLOCK_LABEL + parameter) == saved_as


def block_of(run: FlowRun, parameter: str) -> Block:
    """Load the saved block of a run's parameter; one that was deleted and saved again by its name.

    Raises:
        ConfigurationError: the parameter names no saved block, or one that was deleted or is not valid.
    """
    what = f"parameter {parameter} of run {run.name}"
    reference = block_reference(run, parameter)
    if reference is None:
        raise ConfigurationError(f"{what} is not a saved block, so it cannot be loaded")
    try:
        return cast("Block", Block.load_from_ref(reference))
    except ValueError:  # Prefect's error for a 404
        block, fault = _load(run.labels.get(BLOCK_LABEL + parameter))
    except (RuntimeError, UnknownBlockType) as error:
        block, fault = None, fault_of(error)
    if block is None:  # outside of the handlers: pydantic's own message may hold secrets of the block
        raise ConfigurationError(f"{what}: its block {fault}; save it again under its name")
    return block


def unusable(reference: Any) -> Unusable | None:
    """Return what is known of a referenced block that was deleted or is not valid; None for any other."""
    document_id = _id_of(reference)
    if document_id is None:
        return None
    with get_client(sync_client=True) as client:
        try:
            document = client.read_block_document(document_id)
        except ObjectNotFound:
            return Unusable(reference)
    try:
        Block._load_from_block_document(document)  # noqa: SLF001 - `load_from_ref` reads again
    except UNUSABLE:
        slug = document.block_type.slug if document.block_type else None
        return Unusable(reference, f"{slug}/{document.name}")
    return None


def fault_of(error: Exception) -> str:
    """Return why Prefect could not make a block of what is saved: fields and their faults, never their values."""
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


def placeholder(flow: Flow[..., Any], parameter: str) -> Block | None:
    """Return an empty block of the parameter's type, or None where that is allowed; it never reaches the flow."""
    hint = get_type_hints(flow.fn)[parameter]
    if type(None) in get_args(hint):
        return None
    kinds = [kind for kind in (hint, *get_args(hint)) if inspect.isclass(kind) and issubclass(kind, Block)]
    return kinds[0].model_construct()


def with_saved_blocks(
    run: FlowRun,
    arguments: Mapping[str, Any],
    gone: Mapping[str, Unusable],
    *,
    required_later: tuple[str, ...],
) -> dict[str, Any]:
    """Return the arguments of a run, with unusable blocks (`gone`) replaced by those saved again under their names.

    Parameters in `required_later` may be missing: the steps that need them call `require_blocks`.

    Raises:
        ConfigurationError: a block is missing, and the run has never waited.
    """
    found: dict[str, Block] = {}
    missing: dict[str, _Missing] = {}
    for name, lost in gone.items():
        saved_as = lost.block or run.labels.get(BLOCK_LABEL + name)
        block, fault = _load(saved_as)
        if block:
            found[name] = block
        else:
            missing[name] = _Missing({"$ref": lost.reference}, _error(name, saved_as, fault))
    _missing.set(missing)
    complete = {**arguments, **found}
    if found:
        with get_client(sync_client=True) as client:
            changed = {name: as_parameter(block) for name, block in found.items()}
            client.update_flow_run(run.id, parameters=run.parameters | changed)
    _store_names(run, complete)
    needed = [name for name in missing if name not in required_later]
    if needed and was_suspended(run.tags):
        outlast(lambda: require_blocks(*needed), key="block", timeout=_PATIENCE)
    elif needed:
        require_blocks(*needed)
    return complete


def require_blocks(*parameters: str) -> None:
    """Check that the blocks of these parameters can be used.

    Raises:
        BlockMissing: one was deleted or is not valid; the run waits until it is saved again.
        ConfigurationError: one was deleted, and its name is not known.
    """
    for name in parameters:
        if gone := _missing.get({}).get(name):
            if not retry_count(this_run()):
                create_markdown_artifact(
                    key=f"assay-block-{name}",
                    markdown=str(gone.error),
                    description="A block that this run needs",
                )
            raise gone.error


def passed_on(name: str, value: Any) -> Any:
    """Return a block for a child run; an unusable one as its reference, so that the child requires it."""
    gone = _missing.get({}).get(name)
    return gone.reference if gone else value


def is_saved(client: SyncPrefectClient, block: str, *, since: datetime | None = None) -> bool:
    """Return True if there is a block `type/name` that can be used, saved after `since` if that is given."""
    try:
        document = _document(client, block)
        Block._load_from_block_document(document)  # noqa: SLF001 - `load` hides whether it is missing or not valid
    except (ObjectNotFound, *UNUSABLE):
        return False
    return since is None or (document.updated is not None and document.updated > since)


def _load(block: Any) -> tuple[Block | None, str]:
    """The block saved as `type/name`, or what is wrong with it."""
    if not isinstance(block, str):
        return None, _DELETED
    with get_client(sync_client=True) as client:
        try:
            document = _document(client, block)
            return Block._load_from_block_document(document), ""  # noqa: SLF001 - as in `is_saved`
        except ObjectNotFound:
            return None, _DELETED
        except UNUSABLE as error:
            return None, fault_of(error)


def _document(client: SyncPrefectClient, block: str) -> BlockDocument:
    slug, _, name = block.partition("/")
    return client.read_block_document_by_name(name, slug)


def _error(parameter: str, block: Any, why: str) -> ConfigurationError:
    if not isinstance(block, str):
        return ConfigurationError(
            f"the block of this run's parameter {parameter} was deleted, and its name is not known; nothing is lost. "
            "Start the same campaign again with another block: it goes on from where the service is"
        )
    return BlockMissing(
        f"the block {block} of this run's parameter {parameter} {why}; nothing is lost. Save a block of this type under "
        "this name again, and the run goes on",
        parameter=parameter,
        block=block,
    )


def _store_names(run: FlowRun, arguments: Mapping[str, Any]) -> None:
    names = {
        label: block
        for name, value in arguments.items()
        if isinstance(value, Block)
        and (saved_as := name_of(value))
        and (block := f"{value.get_block_type_slug()}/{saved_as}")
        and run.labels.get(label := BLOCK_LABEL + name) != block
    }
    if names:
        set_labels(run.id, names)
