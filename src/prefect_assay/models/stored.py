"""Sequences as the service keeps them (contract 4.3)."""

from datetime import datetime
from typing import Any

from prefect_assay.models.base import Maybe, WireModel


class StoredSequence(WireModel):
    """A row of a sequence list, or the whole record. Lists carry `aa_preview`, the record `aa_string`."""

    id: str
    name: str | None = None
    aa_string: str | None = None
    aa_preview: str | None = None
    length: int | None = None
    is_control: bool | None = None
    experiment_id: str | None = None
    experiment_code: str | None = None
    metadata: dict[str, Any] | None = None
    created_at: datetime | None = None
    experiment: Maybe[dict[str, Any]] = None


class AddedSequences(WireModel):
    """The answer of POST /sequences."""

    added_count: int
    experiment_code: str | None = None
    experiment_id: str | None = None
    sequence_ids: tuple[str, ...] = ()
