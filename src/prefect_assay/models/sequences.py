"""Designs as a user brings them: sequences, where they came from, and how they are split into experiments."""

from typing import Any

from pydantic import Field

from prefect_assay.models.base import Model


class Sequence(Model):
    """One design. `aa_string` is upper case, chains separated by a colon (contract 2.3)."""

    name: str
    aa_string: str
    control: bool = False
    metadata: dict[str, Any] = Field(default_factory=dict)

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
    items: tuple[Sequence, ...]
    duplicates: tuple[Duplicate, ...] = ()

    def __len__(self) -> int:
        return len(self.items)


class Batch(Model):
    """The designs of one experiment. `index` counts from 0 and is part of the order key."""

    index: int
    count: int
    items: tuple[Sequence, ...]
