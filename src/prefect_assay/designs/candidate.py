"""One proposed design with what its designer says about it: the parents it was made from, its method, its scores."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Self

from pydantic import Field

from prefect_assay.service.models.base import StoredModel
from prefect_assay.service.models.sequences import ProteinSequence

PARENT_COLUMNS: Final = ("parents", "parent", "parent_id", "parent_name", "backbone")
"""Titles in any case; the first that a design has counts. ProteinMPNN's samples have a backbone."""
_OF_THE_CANDIDATE: Final = frozenset(PARENT_COLUMNS[:2])
METHOD: Final = "method"
_SEPARATOR: Final = ";"


class Candidate(StoredModel):
    """A design that may be bought. `sequence` is as in `ProteinSequence.aa_string`.

    `parents` are names of the designs it was made from; `columns` are the designer's own, such as method, ipTM or round.
    """

    name: str
    sequence: str
    parents: tuple[str, ...] = ()
    columns: dict[str, str] = Field(default_factory=dict)
    control: bool = False
    metadata: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def of(cls, design: ProteinSequence) -> Self:
        """A design of a file; its column `parents`, `parent` or the like names the parents, with `;` between them."""
        return cls(
            name=design.name,
            sequence=design.aa_string,
            parents=parents_of(design.attributes),
            columns={
                title: cell
                for title, cell in design.attributes.items()
                if title.casefold() not in _OF_THE_CANDIDATE
            },
            control=design.control,
            metadata=design.metadata,
        )

    def attributes(self) -> dict[str, str]:
        """The designer's columns with the parents among them, as the attributes of a `ProteinSequence`."""
        if not self.parents:
            return dict(self.columns)
        return {**self.columns, PARENT_COLUMNS[0]: f"{_SEPARATOR} ".join(self.parents)}


def parents_of(attributes: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the parents in the designer's columns of one design."""
    cells = [(place, cell) for title, cell in attributes.items() if (place := _find_place(title)) is not None]
    cell = min(cells)[1] if cells else ""
    return tuple(name for part in cell.split(_SEPARATOR) if (name := part.strip()))


@lru_cache(maxsize=4096)
def _find_place(title: str) -> int | None:
    """The place of a title of parents; asked for every column of a million candidates."""
    key = title.casefold()
    return PARENT_COLUMNS.index(key) if key in PARENT_COLUMNS else None


def method_of(attributes: Mapping[str, str], column: str | None = None) -> str | None:
    """The cell of the method's column; by default of the column `method`, in any case."""
    if column is not None:
        return attributes.get(column)
    return next((cell for title, cell in attributes.items() if title.casefold() == METHOD), None)
