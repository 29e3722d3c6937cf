"""Designs of a user, split into experiments, and sequences as the service stores them (contract 4.3)."""

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import Field

from prefect_assay.service.models.base import Model, Moment, WireModel
from prefect_assay.service.models.identifiers import Identifier


@dataclass(frozen=True, slots=True)
class ProteinSequence:
    """One design. `aa_string` is upper case, chains separated by a colon (contract 2.3).

    `attributes` are the designer's own columns by title, such as ipTM. They are not sent to the service. No Pydantic
    model, because files hold a hundred thousand of them; `designs` checks what it reads.
    """

    name: str
    aa_string: str
    control: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)

    @property
    def residues(self) -> int:
        """Number of amino acids over all chains."""
        return len(self.aa_string.replace(":", ""))


@dataclass(frozen=True, slots=True)
class SequenceEntry:
    """A sequence that is added to a draft, or replaces one (contract 2.4). `metadata` is any JSON value; None leaves it out."""

    name: str
    aa_string: str
    control: bool = False
    metadata: Any = None


class Duplicate(Model):
    """A design left out because another one has the same residues and tag location (contract 2.3)."""

    name: str
    same_as: str


class LeftOut(Model):
    """A record that is not measured, with its line and why."""

    name: str
    line: int | None = None
    reason: str


class ReadingReport(Model):
    """How a source was read: what a person has to know before it is ordered.

    `columns` names the column of each role: name, sequence, parent, method. `others` are the designer's own columns.
    `other_sequences` are columns that hold sequences and were not taken. `left_out` and `renamed` list the first; `left_out_count` and `renamed_count` count all. `doubts` are
    observations about the designs that a person may recognize.
    """

    format: str = ""
    producer: str | None = None
    columns: dict[str, str] = Field(default_factory=dict)
    scores: dict[str, bool] = Field(
        default_factory=dict
    )  # columns with scores of a known direction: is more better?
    others: tuple[str, ...] = ()
    other_sequences: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    left_out_count: int = 0
    renamed: tuple[tuple[str, str], ...] = ()  # as written, as read
    renamed_count: int = 0
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


class Sequences(Model):
    """All designs of one source, checked: valid letters, unique names, no duplicates.

    `notes` says what was read in a special way, one line each; `report` has all that reading did.
    """

    source: str
    items: tuple[ProteinSequence, ...]
    duplicates: tuple[Duplicate, ...] = ()
    notes: tuple[str, ...] = ()
    report: ReadingReport = ReadingReport()

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pool:
    """A pool to choose from: up to a million checked designs in the order of their source, in little memory.

    Iterating or indexing makes each `ProteinSequence` when it is needed. `names[i]`, `residues[i]` and `extras[i]` belong
    to one design; `unpack(extras[i])` gives its attributes. `controls` and `metadata` are by position. `duplicates` are
    pairs of names: left out, kept; `duplicate_extras` has the attributes of those that were left out, by their places.
    """

    source: str
    names: tuple[str, ...]
    residues: tuple[str, ...]
    extras: tuple[str, ...]
    unpack: Callable[[str], dict[str, str]]
    controls: frozenset[int]
    metadata: Mapping[int, dict[str, Any]]
    duplicates: tuple[tuple[str, str], ...] = ()
    duplicate_extras: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    report: ReadingReport = field(default_factory=ReadingReport)

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> ProteinSequence:
        """One design; IndexError beyond the last."""
        position = index if index >= 0 else index + len(self.names)
        extra = self.extras[position]
        return ProteinSequence(
            self.names[position],
            self.residues[position],
            position in self.controls,
            self.metadata.get(position) or {},
            self.unpack(extra) if extra else {},
        )

    def __iter__(self) -> Iterator[ProteinSequence]:
        if self.controls or self.metadata:
            return map(self.__getitem__, range(len(self.names)))
        # The usual pool, in half the time.
        if not any(self.extras):
            return map(ProteinSequence, self.names, self.residues)
        columns = zip(self.names, self.residues, self.extras, strict=True)
        unpack = self.unpack
        return (ProteinSequence(n, r, attributes=unpack(x) if x else {}) for n, r, x in columns)

    def keeping(self, names: Container[str]) -> "Pool":
        """The pool with these duplicates in the places of the designs whose residues they have."""
        swapped = {
            kept: (name, extra)
            for (name, kept), extra in zip(self.duplicates, self.duplicate_extras, strict=True)
            if name in names
        }
        if not swapped:
            return self
        extras_by_name = dict(zip(self.names, self.extras, strict=True))
        placed = [swapped.get(name, (name, extra)) for name, extra in extras_by_name.items()]
        left = [
            ((kept, name), extras_by_name[kept])
            if swapped.get(kept, ("", ""))[0] == name
            else ((name, swapped[kept][0] if kept in swapped else kept), extra)
            for (name, kept), extra in zip(self.duplicates, self.duplicate_extras, strict=True)
        ]
        return replace(
            self,
            names=tuple(name for name, _ in placed),
            extras=tuple(extra for _, extra in placed),
            duplicates=tuple(pair for pair, _ in left),
            duplicate_extras=tuple(extra for _, extra in left),
        )


class Batch(Model):
    """The designs of one experiment. `index` counts from 0 and is part of the order key."""

    index: int
    count: int
    items: tuple[ProteinSequence, ...]


class StoredSequence(WireModel):
    """A row of a sequence list, or the whole record. Lists carry `aa_preview`, the record `aa_string`."""

    id: Identifier
    name: str | None = None
    aa_string: str | None = None
    aa_preview: str | None = None
    length: int | None = None
    is_control: bool | None = None
    experiment_id: Identifier | None = None
    experiment_code: str | None = None
    metadata: Any = None  # any JSON value (contract 2.4)
    created_at: Moment | None = None
    experiment: dict[str, Any] | None = None


class AddedSequences(WireModel):
    """The answer of POST /sequences."""

    added_count: int
    experiment_code: str | None = None
    experiment_id: Identifier | None = None
    sequence_ids: tuple[Identifier, ...] = ()
