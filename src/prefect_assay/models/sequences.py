"""Designs of a user, split into experiments, and sequences as the service stores them (contract 4.3)."""

from datetime import datetime
from typing import Any

from pydantic import Field

from prefect_assay.models.base import Maybe, Model, WireModel


class ProteinSequence(Model):
    """One design. `aa_string` is upper case, chains separated by a colon (contract 2.3).

    `attributes` are the designer's own columns by title, such as ipTM. They are not sent to the service.
    """

    name: str
    aa_string: str
    control: bool = False
    metadata: dict[str, Any] = Field(default_factory=dict)
    attributes: dict[str, str] = Field(default_factory=dict)

    @property
    def residues(self) -> int:
        """Number of amino acids over all chains."""
        return len(self.aa_string.replace(":", ""))


class Duplicate(Model):
    """A design left out because another one has the same residues and tag location (contract 2.3)."""

    name: str
    same_as: str


class Sequences(Model):
    """All designs of one source, checked: valid letters, unique names, no duplicates."""

    source: str
    items: tuple[ProteinSequence, ...]
    duplicates: tuple[Duplicate, ...] = ()

    def __len__(self) -> int:
        return len(self.items)


class Batch(Model):
    """The designs of one experiment. `index` counts from 0 and is part of the order key."""

    index: int
    count: int
    items: tuple[ProteinSequence, ...]


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
