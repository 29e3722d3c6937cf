"""The stored state of the sweep, and the credentials blocks that its watermarks name.

The state is kept in Prefect variables: `assay_sweep`, and `assay_sweep_<digest>` per credentials block. Only changed ones
are written. Anything unreadable counts as absent.
"""

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar, cast

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import VariableCreate, VariableUpdate
from prefect.client.schemas.objects import BlockDocument
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
from pydantic import BaseModel, ValidationError

from prefect_assay.blocks import AssayCredentials
from prefect_assay.errors import ConfigurationError
from prefect_assay.models.sweep import SweepMemory, Watermark
from prefect_assay.runs.queries import read_variables

M = TypeVar("M", bound=BaseModel)

_NAME: Final = "assay_sweep"
_BLOCKS_PER_REQUEST: Final = 200
# A block without a waiting run for this long is not used any more.
_UNUSED: Final = timedelta(days=7)


@dataclass
class SweepState:
    """The variables as they were read; `save` writes what has changed."""

    client: SyncPrefectClient
    stored: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, client: SyncPrefectClient) -> "SweepState":
        """Read all variables of the sweep."""
        return cls(client, {name: _text(value) for name, value in read_variables(client, _NAME)})

    @property
    def overall(self) -> SweepMemory:
        """What concerns all runs."""
        return _parsed(SweepMemory, self.stored.get(_NAME))

    def watermarks(self) -> dict[str, Watermark]:
        """Return the watermarks by the reference of their credentials block, as JSON text."""
        marks = (_parsed(Watermark, text) for name, text in self.stored.items() if name != _NAME)
        return {mark.reference: mark for mark in marks if mark.reference and _is_reference(mark.reference)}

    def watermark(self, reference: str) -> Watermark:
        """Return one watermark; an earlier version wrote it without the reference."""
        found = _parsed(Watermark, self.stored.get(variable_name(reference)))
        return found.model_copy(update={"reference": reference})

    def save(self, changed: SweepMemory | Watermark) -> None:
        """Write it, if it differs from what was read."""
        name = variable_name(changed.reference or "") if isinstance(changed, Watermark) else _NAME
        text = changed.model_dump_json(exclude_defaults=True)
        if self.stored.get(name) == text:
            return
        if name in self.stored:
            self.client.update_variable(VariableUpdate(name=name, value=text))
        else:
            try:
                self.client.create_variable(VariableCreate(name=name, value=text))
            except ObjectAlreadyExists:  # written by another sweep; the later one wins
                self.client.update_variable(VariableUpdate(name=name, value=text))
        self.stored[name] = text

    def forget_unused(self, used: set[str], now: datetime) -> list[str]:
        """Delete the watermarks of blocks without a waiting run for a week; returns the blocks' references."""
        gone = [
            reference
            for reference, mark in self.watermarks().items()
            if reference not in used and (mark.used is None or now - mark.used > _UNUSED)
        ]
        for reference in gone:
            with suppress(ObjectNotFound):
                self.client.delete_variable_by_name(variable_name(reference))
            self.stored.pop(variable_name(reference), None)
        return gone


def variable_name(reference: str) -> str:
    """Return the variable of a credentials block's watermark."""
    return f"{_NAME}_{hashlib.sha256(reference.encode()).hexdigest()[:20]}"


def as_text(reference: dict[str, Any]) -> str:
    """Return the canonical text of a reference."""
    return json.dumps(reference, sort_keys=True)


def read_blocks(client: SyncPrefectClient, references: Iterable[str]) -> dict[str, AssayCredentials]:
    """Read credentials blocks by their references; leaves out those that cannot be read (see `read_block`)."""
    by_id = {_id_of(reference): reference for reference in references}
    by_id.pop(None, None)
    found: dict[str, AssayCredentials] = {}
    ids = sorted(by_id, key=str)
    for start in range(0, len(ids), _BLOCKS_PER_REQUEST):
        body = {
            "block_documents": {"id": {"any_": ids[start : start + _BLOCKS_PER_REQUEST]}},
            "include_secrets": True,
            "limit": _BLOCKS_PER_REQUEST,
        }
        for row in client.request("POST", "/block_documents/filter", json=body).json():
            document = BlockDocument.model_validate(row)
            try:
                block = AssayCredentials._from_block_document(document)  # noqa: SLF001 - Prefect's only way
            except Exception:  # noqa: BLE001, S112 - another type's block, or one that cannot be read
                continue
            if isinstance(block, AssayCredentials):
                found[by_id[str(document.id)]] = block
    return found


def read_block(mark: Watermark) -> AssayCredentials:
    """Read the credentials block of a watermark, by its name if it was saved again.

    Raises:
        ConfigurationError: it was deleted.
    """
    try:
        return cast("AssayCredentials", AssayCredentials.load_from_ref(json.loads(mark.reference or "{}")))
    except ValueError as error:  # Prefect's error for a 404
        if mark.name is None:
            raise ConfigurationError(
                "the block was deleted, and its name is not known: start the campaigns of its runs again"
            ) from error
        try:
            return cast("AssayCredentials", AssayCredentials.load(mark.name))
        except ValueError:
            raise ConfigurationError(
                "the block was deleted: save it again under this name, and its runs are checked again"
            ) from error


def name_of(block: AssayCredentials) -> str | None:
    """Return the name under which a block is saved."""
    return block._block_document_name  # noqa: SLF001 - Prefect has no public name for it


def _id_of(reference: str) -> str | None:
    value = json.loads(reference).get("block_document_id")
    return str(value) if value else None


def _is_reference(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _parsed(kind: type[M], text: str | None) -> M:
    try:
        return kind.model_validate_json(text) if text else kind()
    except ValidationError:
        return kind()  # not a JSON object
