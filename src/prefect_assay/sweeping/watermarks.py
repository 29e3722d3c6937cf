"""The stored state of the sweep, in Prefect variables: `assay_sweep`, and `assay_sweep_<digest>` per credentials block.

All are read in one request; only changed ones are written. Anything unreadable counts as absent.
"""

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import VariableCreate, VariableUpdate
from prefect.client.schemas.filters import VariableFilter, VariableFilterName
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
from pydantic import BaseModel, ValidationError

from prefect_assay.models.sweep import SweepMemory, Watermark

M = TypeVar("M", bound=BaseModel)

_NAME: Final = "assay_sweep"
_PAGE: Final = 200
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
        state = cls(client)
        chosen = VariableFilter(name=VariableFilterName(like_=_NAME)).model_dump(mode="json")
        offset = 0
        while True:
            # The client's own listing takes neither a filter nor an offset.
            page = client.request(
                "POST", "/variables/filter", json={"variables": chosen, "limit": _PAGE, "offset": offset}
            ).json()
            state.stored |= {
                row["name"]: _text(row["value"]) for row in page if row["name"].startswith(_NAME)
            }
            if len(page) < _PAGE:
                return state
            offset += len(page)

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
