"""What was measured before: tables of this package and of the public competition, one `DesignSummary` per design.

Non-binders, designs that did not express and open orders are rows like all others. A measurement that several tables have
counts once. Needs no NumPy.
"""

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from prefect_assay.errors import InputError
from prefect_assay.models.affinity import (
    Affinity,
    UnclearAffinity,
    affinity_columns,
    read_affinities,
)
from prefect_assay.models.vocabulary import ExperimentType
from prefect_assay.results import COLUMNS, DesignSummary, Level, Outcome, ResultRow, from_csv, summarize
from prefect_assay.results.formats import csv_lines, table_content
from prefect_assay.results.tidy import outcome_of
from prefect_assay.selection.once import Entry, counted_once, residues_of, summary_of

Table = str | bytes | Path
_TIDY: Final = frozenset({"experiment_code", "result_id", "level", "name", "outcome"})
_FIELDS: Final = frozenset(DesignSummary.model_fields) - {"attributes", "reasons"}
_EMPTY: Final = frozenset({"", "null", "na", "n/a", "nan"})  # "none" is a call: no expression, no strength
_WORDS: Final = {"yes": "true", "1": "true", "no": "false", "0": "false"}
_DELIMITERS: Final = (",", "\t", ";")
_NAME: Final = "name"
_SEQUENCE: Final = ("sequence", "aa_string")
_CALLS: Final = ("binding", "binding_strength", "expression")
_READ: Final = frozenset({_NAME, *_SEQUENCE, "kon", "koff", "replicate", *_CALLS})
_FAILED: Final = frozenset({Outcome.NO_BINDING, Outcome.NO_EXPRESSION})


@dataclass(frozen=True, slots=True)
class History:
    """Designs of earlier rounds with their outcomes; `notes` says what was read in a special way, one line each."""

    designs: tuple[DesignSummary, ...] = ()
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.designs)

    def residues(self) -> frozenset[str]:
        """The residues of all designs that were measured or ordered."""
        return frozenset(found for design in self.designs if (found := residues_of(design)))


def history_of(designs: Iterable[DesignSummary], notes: Sequence[str] = ()) -> History:
    """The history of designs that are in memory, such as the summary of a campaign."""
    found = tuple(designs)
    nameless = sum(not residues_of(design) for design in found)
    if nameless:
        more = f"{nameless} of {len(found)} measured designs have no residues: they count only for hit rates"
        notes = (*notes, more)
    return History(found, tuple(notes))


def read_history(*tables: Table, kd_unit: str | None = None) -> History:
    """Read `results.csv`, `summary.csv`, `prefect-assay results --csv` or files with the competition's columns.

    Args:
        tables: each as a path, an `s3://bucket/key` address, bytes, or text with line ends.
        kd_unit: the unit of K_D in tables whose titles do not say it, such as `nM`.

    Raises:
        InputError: there is no such file, or it is no such table; the faulty row is named.
        ServiceUnavailable: the object storage did not answer; try again later.
    """
    entries: list[Entry] = []
    notes: list[str] = []
    places: set[str] = set()
    for number, table in enumerate(tables, start=1):
        pasted = isinstance(table, bytes) or "\n" in str(table) or "\r" in str(table)
        place = "the given table" if pasted else str(table)
        label = f"{place} (table {number})" if place in places else place
        places.add(place)
        found, said = _Reader(place, label, kd_unit).read(table)
        entries += found
        notes += said
    designs, merged = counted_once(entries)
    return history_of(designs, (*notes, *merged))


class _Reader:
    """Reads one table; `place` names it in errors, `label` in notes, where two tables may have one name."""

    def __init__(self, place: str, label: str, kd_unit: str | None) -> None:
        self._place = place
        self._label = label
        self._kd_unit = kd_unit
        self._notes: list[str] = []

    def read(self, table: Table) -> tuple[list[Entry], list[str]]:
        data = table_content(table)
        header, lines = _lines(data, self._place)
        if set(COLUMNS) >= set(header) >= _TIDY:
            entries = self._tidy(data)
        elif {"name", "outcome"} <= set(header):
            entries = list(self._own(header, lines))
        else:
            entries = self._measured(header, lines)
        return entries, [f"{self._label}: {note}" for note in self._notes]

    def _tidy(self, data: bytes) -> list[Entry]:
        try:
            rows = from_csv(data)
        except InputError as error:
            raise InputError(f"{self._place}: {error}") from None
        replicates: defaultdict[tuple[str, str], list[ResultRow]] = defaultdict(list)
        for row in rows:
            if row.level is Level.REPLICATE:
                replicates[row.name, row.experiment_code].append(row)
        return [
            Entry(design, (self._label,), tuple(replicates[design.name, design.experiment_code]))
            for design in summarize(rows)
        ]

    def _own(self, header: Sequence[str], lines: Sequence[tuple[int, Sequence[str]]]) -> Iterator[Entry]:
        """Rows of `summary.csv` or of the lake; columns without a meaning here are the designer's own."""
        affinities = self._affinities(header, lines)
        used = {header[at] for at in affinity_columns(header).used} - _FIELDS
        for (at, cells), affinity in zip(lines, affinities, strict=True):
            row = dict(zip(header, cells, strict=True))
            if row.get("level", Level.SUMMARY) != Level.SUMMARY:
                continue
            known: dict[str, Any] = {title: cell for title, cell in row.items() if title in _FIELDS and cell}
            own = {
                title: cell
                for title, cell in row.items()
                if title not in _FIELDS and title not in COLUMNS and title not in {"reasons", *used} and cell
            }
            if affinity.kd_M is not None:
                known |= {"kd_M": affinity.kd_M, "qualifier": affinity.qualifier}
            known = {"experiment_code": "", **known, "attributes": own}
            try:
                design = DesignSummary.model_validate(known, strict=False)
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                raise InputError(
                    f"{self._place}, row {at}, column {first['loc'][0]}: {first['msg']}"
                ) from None
            yield Entry(design, (self._label,))

    def _measured(self, header: Sequence[str], lines: Sequence[tuple[int, Sequence[str]]]) -> list[Entry]:
        """A table of the competition or another program: a row per design, or one per replicate."""
        keys = {title.strip().lower().replace(" ", "_"): at for at, title in enumerate(header)}
        columns = affinity_columns(header)
        if _NAME not in keys or not (columns.values or "binding" in keys):
            raise InputError(
                f"{self._place} is no table of results: it needs the columns name and outcome, or name and kd or binding, and "
                f"has [{', '.join(title[:40] for title in header[:20])}]; give results.csv, summary.csv or a competition file"
            )
        calls = [{call: _call(cells, keys.get(call)) for call in _CALLS} for _, cells in lines]
        affinities = self._affinities(header, lines, calls)
        own = {
            title: at
            for title, at in zip(header, range(len(header)), strict=True)
            if at not in columns.used and title.strip().lower().replace(" ", "_") not in _READ
        }
        found: dict[tuple[str, str], list[tuple[ResultRow, dict[str, str]]]] = {}
        for (_, cells), called, affinity in zip(lines, calls, affinities, strict=True):
            row = self._row(cells, keys, called, affinity)
            kept = {title: cell for title, at in own.items() if (cell := cells[at]).lower() not in _EMPTY}
            found.setdefault((row.name, row.aa_string or ""), []).append((row, kept))
        replicated = "replicate" in keys
        return [
            self._design([row for row, _ in rows], [kept for _, kept in rows], replicated=replicated)
            for rows in found.values()
        ]

    def _row(
        self,
        cells: Sequence[str],
        keys: Mapping[str, int],
        called: Mapping[str, str | None],
        affinity: Affinity,
    ) -> ResultRow:
        number = _filled(cells, keys.get("replicate"))
        values: dict[str, Any] = {
            **called,
            "kd_M": affinity.kd_M,
            "qualifier": affinity.qualifier,
        }
        if affinity.binds is False and called["binding"] is None:
            values["binding"] = "false"
        return ResultRow(
            experiment_code="",
            result_id="",
            result_type=ExperimentType.AFFINITY.value,
            level=Level.REPLICATE,
            name=cells[keys[_NAME]],
            replicate=int(number) if number.isdecimal() else None,
            outcome=outcome_of(ExperimentType.AFFINITY, values, {}),
            aa_string=next((text for title in _SEQUENCE if (text := _filled(cells, keys.get(title)))), None),
            **values,
        )

    def _design(
        self, rows: Sequence[ResultRow], kept: Sequence[Mapping[str, str]], *, replicated: bool
    ) -> Entry:
        first = rows[0]
        attributes: dict[str, str] = {}
        for own in reversed(kept):
            attributes |= own
        design = DesignSummary(
            name=first.name,
            experiment_code="",
            result_type=ExperimentType.AFFINITY,
            aa_string=first.aa_string,
            attributes=attributes,
            **{call: next((said for row in rows if (said := getattr(row, call))), None) for call in _CALLS},
            **summary_of(rows),
        )
        return Entry(design, (self._label,), tuple(rows) if replicated or len(rows) > 1 else ())

    def _affinities(
        self,
        header: Sequence[str],
        lines: Sequence[tuple[int, Sequence[str]]],
        calls: Sequence[Mapping[str, str | None]] | None = None,
    ) -> list[Affinity]:
        """K_D of each row. What is called a failure has none: its number, if any, is an artefact of the fit."""
        failed = [
            outcome_of(ExperimentType.AFFINITY, called, {}) in _FAILED
            for called in calls or [{}] * len(lines)
        ]
        rows = [[""] * len(header) if no else cells for (_, cells), no in zip(lines, failed, strict=True)]
        try:
            found, notes = read_affinities(header, rows, unit=self._kd_unit)
        except UnclearAffinity as error:
            where = "" if error.at is None else f", row {lines[error.at][0]}"
            raise InputError(f"{self._place}{where}: {error.problem}") from None
        self._notes += notes
        return found


def _call(cells: Sequence[str], at: int | None) -> str | None:
    word = _filled(cells, at).lower()
    return _WORDS.get(word, word) or None


def _filled(cells: Sequence[str], at: int | None) -> str:
    """A cell; empty for the words that mean no value. Names are never read with it: a design may be called NA."""
    cell = "" if at is None else cells[at]
    return "" if cell.lower() in _EMPTY else cell


def _lines(data: bytes, place: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header, and the cells of each row with its number, counted from 1 below the header."""
    try:
        first = data.partition(b"\n")[0].decode("utf-8-sig")
        table = csv_lines(data, max(_DELIMITERS, key=first.count))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{place} is no table of results: {error}") from None
    header = [title.strip() for title in table[0]] if table else []
    rows = []
    for number, cells in enumerate(table[1:], start=1):
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(header):
            raise InputError(f"{place}, row {number} has {len(cells)} cells, the header {len(header)}")
        rows.append((number, [cell.strip() for cell in cells]))
    return header, rows
