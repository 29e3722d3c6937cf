"""What the readers hand to the checks: designs as written, and the errors of their source."""

from dataclasses import dataclass, field
from typing import Any, Final

from prefect_assay.errors import InvalidSequences
from prefect_assay.models.shown import SHOWN_MAX, shown

# The service publishes no length limit; the longest known protein has some 35,000 residues.
MAX_RESIDUES: Final = 100_000
MAX_SEQUENCES: Final = 100_000


@dataclass(frozen=True, slots=True)
class Record:
    """A design as written: `line` is where it starts, `residues` has no white space but any letters."""

    line: int
    name: str
    residues: str
    control: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)


KEPT: Final = 50  # a binary file or a wrong column must not end in a million lines


class SourceErrors:
    """Every error of one source with its place, so that a user sees all of them at once."""

    def __init__(self, source: str) -> None:
        place = source if source.isprintable() else ascii(source)
        self.source = place if len(place) <= 2 * SHOWN_MAX else "..." + place[-2 * SHOWN_MAX :]
        self._kept: list[str] = []
        self._more = 0

    def add(self, message: str, *, line: int | None = None, name: str | None = None) -> None:
        """Note an error and go on; `line` counts from 1, `name` is the sequence's."""
        if len(self._kept) >= KEPT:
            self._more += 1
            return
        place = self.source if line is None else f"{self.source}, line {line}"
        place = place if name is None else f"{place}, sequence {shown(name)}"
        self._kept.append(f"{place}: {message}")

    def stop(self, message: str, *, line: int | None = None) -> InvalidSequences:
        """The exception to raise when reading cannot go on, with the earlier errors."""
        self._kept = self._kept[: KEPT - 1]
        self.add(message, line=line)
        return self._error()

    def check(self) -> None:
        """Raise InvalidSequences if there is any error."""
        if self._kept:
            raise self._error()

    def _error(self) -> InvalidSequences:
        more = [f"{self.source}: {self._more} more findings are not listed"] if self._more else []
        return InvalidSequences([*self._kept, *more])
