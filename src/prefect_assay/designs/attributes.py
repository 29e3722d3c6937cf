"""The designer's own columns on their way into a plan: what fits is kept, in whole columns.

A plan is read at every wake-up of its campaign, so its size is bounded. Columns are left out whole, because a column
with gaps looks like missing measurements. Nothing here is sent to the service or used in an order key.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from prefect_assay.models.sequences import ProteinSequence

PLAN_BYTES: Final = 4 * 1024 * 1024
LONG_TEXT: Final = 200  # characters; a score or a label is shorter, a structure or a list of residues is not
_JSON_OVERHEAD: Final = 20  # quotes, colon, comma, line end and indentation of one value in the plan


@dataclass(frozen=True, slots=True)
class KeptAttributes:
    """`{design name: {title: value}}` of the columns that fit, and the titles of the others."""

    by_design: dict[str, dict[str, str]]
    left_out: tuple[str, ...]


@dataclass(slots=True)
class _Column:
    """What decides whether a column is kept."""

    bytes: int = 0
    longest: int = 0
    values: set[str] = field(default_factory=set)

    def add(self, title: str, value: str) -> None:
        self.bytes += len(title.encode()) + len(value.encode()) + _JSON_OVERHEAD
        self.longest = max(self.longest, len(value))
        if len(self.values) <= 1:  # constant or not
            self.values.add(value)

    @property
    def rank(self) -> int:
        """Columns that tell designs apart come first, then settings that all share, then long text."""
        if self.longest > LONG_TEXT:
            return 2
        return 0 if len(self.values) > 1 else 1


def kept_attributes(sequences: Iterable[ProteinSequence], limit: int = PLAN_BYTES) -> KeptAttributes:
    """The columns of the designs that fit into `limit` bytes of JSON, in the order of the file.

    Short values that differ between designs are kept first, then columns with one value, then long text.
    """
    designs = [sequence for sequence in sequences if sequence.attributes]
    columns: dict[str, _Column] = {}
    for sequence in designs:
        for title, value in sequence.attributes.items():
            columns.setdefault(title, _Column()).add(title, value)
    kept: set[str] = set()
    room = limit
    for title, column in sorted(
        columns.items(), key=lambda item: item[1].rank
    ):  # stable: file order in a rank
        if column.bytes <= room:
            kept.add(title)
            room -= column.bytes
    by_design = {
        sequence.name: chosen
        for sequence in designs
        if (chosen := {title: value for title, value in sequence.attributes.items() if title in kept})
    }
    return KeptAttributes(by_design, tuple(title for title in columns if title not in kept))
