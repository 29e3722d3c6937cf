"""Collects what is wrong with a source of designs, so that a user sees everything at once and not too much.

The number of findings kept is bounded: a binary file or a wrong column must not end in a million lines.
"""

from typing import Final

from prefect_assay.errors import InvalidSequences
from prefect_assay.models.shown import SHOWN_MAX, shown

__all__ = ["KEPT", "Findings", "shown"]

KEPT: Final = 50


class Findings:
    """The findings about one source, each with its place."""

    def __init__(self, source: str) -> None:
        place = source if source.isprintable() else ascii(source)
        self.source = place if len(place) <= 2 * SHOWN_MAX else "..." + place[-2 * SHOWN_MAX :]
        self._kept: list[str] = []
        self._more = 0

    def add(self, message: str, *, line: int | None = None, name: str | None = None) -> None:
        """Note a finding and go on; `line` counts from 1, `name` is the sequence's."""
        if len(self._kept) >= KEPT:
            self._more += 1
            return
        place = self.source if line is None else f"{self.source}, line {line}"
        place = place if name is None else f"{place}, sequence {shown(name)}"
        self._kept.append(f"{place}: {message}")

    def stop(self, message: str, *, line: int | None = None) -> InvalidSequences:
        """The error to raise when reading cannot go on; it carries the earlier findings as well."""
        self._kept = self._kept[: KEPT - 1]
        self.add(message, line=line)
        return self._error()

    def check(self) -> None:
        """Raise what was found, if anything was."""
        if self._kept:
            raise self._error()

    def _error(self) -> InvalidSequences:
        more = [f"{self.source}: {self._more} more findings are not listed"] if self._more else []
        return InvalidSequences([*self._kept, *more])
