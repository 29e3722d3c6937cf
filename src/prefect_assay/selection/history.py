"""What was measured before: tables of this package and of the public competition, one `DesignSummary` per design.

Non-binders, designs that did not express and open orders are rows like all others. Needs no NumPy.
"""

import csv
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any, Final

from pydantic import ValidationError

from prefect_assay.errors import InputError
from prefect_assay.models.vocabulary import ExperimentType
from prefect_assay.results import COLUMNS, DesignSummary, Level, Outcome, from_csv, summarize
from prefect_assay.results.formats import csv_lines, table_content
from prefect_assay.results.tidy import outcome_of

Table = str | bytes | Path
_TIDY: Final = frozenset({"experiment_code", "result_id", "level", "name", "outcome"})
_FIELDS: Final = frozenset(DesignSummary.model_fields) - {"attributes", "reasons"}
_EMPTY: Final = frozenset({"", "null", "na", "n/a", "nan"})  # "none" is a call: no expression, no strength
_WORDS: Final = {"yes": "true", "1": "true", "no": "false", "0": "false"}
_DELIMITERS: Final = (",", "\t", ";")
_TIERS: Final = {outcome: place for place, outcome in enumerate(Outcome)}
_KD: Final = ("kd", "kd_m")
_READ: Final = frozenset({"name", "sequence", "aa_string", "kon", "koff", "replicate", *_KD})
_CALLS: Final = ("binding", "binding_strength", "expression")


@dataclass(frozen=True, slots=True)
class History:
    """Designs of earlier rounds with their outcomes; `notes` says what could not be used, one line each."""

    designs: tuple[DesignSummary, ...] = ()
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.designs)

    def residues(self) -> frozenset[str]:
        """The residues of all designs that were measured or ordered."""
        return frozenset(found for design in self.designs if (found := residues_of(design)))


def residues_of(design: DesignSummary) -> str:
    """The residues of a design in upper case; empty where its table has none."""
    return "".join((design.aa_string or "").split()).upper()


def history_of(designs: Iterable[DesignSummary]) -> History:
    """The history of designs that are in memory, such as the summary of a campaign."""
    found = tuple(designs)
    nameless = sum(not residues_of(design) for design in found)
    notes = (
        [f"{nameless} of {len(found)} measured designs have no residues: they count only for hit rates"]
        if nameless
        else []
    )
    return History(found, tuple(notes))


def read_history(*tables: Table) -> History:
    """Read `results.csv`, `summary.csv`, `prefect-assay results --csv` or files with the competition's columns.

    Args:
        tables: each as a path, an `s3://bucket/key` address, bytes, or text with line ends.

    Raises:
        InputError: there is no such file, or it is no such table; the faulty row is named.
        ServiceUnavailable: the object storage did not answer; try again later.
    """
    return history_of(design for table in tables for design in _read(table))


def _read(table: Table) -> Sequence[DesignSummary]:
    pasted = isinstance(table, bytes) or "\n" in str(table) or "\r" in str(table)
    place = "the given table" if pasted else str(table)
    data = table_content(table)
    header, lines = _lines(data, place)
    if set(COLUMNS) >= set(header) >= _TIDY:
        try:
            return summarize(from_csv(data))
        except InputError as error:
            raise InputError(f"{place}: {error}") from None
    if {"name", "outcome"} <= set(header):
        rows = ((at, row) for at, row in lines if row.get("level", Level.SUMMARY) == Level.SUMMARY)
        return [_own(row, f"{place}, row {at}") for at, row in rows]
    keys = {title.strip().lower().replace(" ", "_"): title for title in header}
    if not ("name" in keys and (keys.keys() & {*_KD, "binding"})):
        raise InputError(
            f"{place} is no table of results: it needs the columns name and outcome, or name and kd or binding, and has "
            f"[{', '.join(title[:40] for title in header[:20])}]; give results.csv, summary.csv or a competition file"
        )
    return _competition(keys, lines, place)


def _lines(data: bytes, place: str) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """The header, and each row by title with its number, counted from 1 below the header."""
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
        rows.append((number, dict(zip(header, (cell.strip() for cell in cells), strict=True))))
    return header, rows


def _own(row: Mapping[str, str], place: str) -> DesignSummary:
    """A row of `summary.csv` or of the lake; columns without a meaning here are the designer's own."""
    known = {title: cell for title, cell in row.items() if title in _FIELDS and cell}
    own = {
        title: cell
        for title, cell in row.items()
        if title not in _FIELDS and title not in COLUMNS and title != "reasons" and cell
    }
    try:
        return DesignSummary.model_validate({"experiment_code": "", **known, "attributes": own}, strict=False)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InputError(f"{place}, column {first['loc'][0]}: {first['msg']}") from None


def _competition(
    keys: Mapping[str, str], lines: Iterable[tuple[int, Mapping[str, str]]], place: str
) -> list[DesignSummary]:
    """One design per name and residues: the files have a row per design, or one per replicate."""
    replicates: defaultdict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for at, row in lines:
        cells = {key: "" if row[title].lower() in _EMPTY else row[title] for key, title in keys.items()}
        cells["at"] = f"{place}, row {at}"
        replicates[cells["name"], cells.get("sequence") or cells.get("aa_string") or ""].append(cells)
    return [_competitor(name, residues, rows, keys) for (name, residues), rows in replicates.items()]


def _competitor(
    name: str, residues: str, rows: Sequence[Mapping[str, str]], keys: Mapping[str, str]
) -> DesignSummary:
    """K_D is the geometric mean of the replicates that share the outcome of most of them; equals favour the better one.

    Limits are left out of the mean. Where all are limits, the one that all agree with is kept.
    """
    values = [_values(row) for row in rows]
    outcomes = [outcome_of(ExperimentType.AFFINITY, value, {}) for value in values]
    counts = Counter(outcomes)
    outcome = min(counts, key=lambda found: (-counts[found], _TIERS[found]))
    own = {
        title: cell
        for key, title in keys.items()
        if key not in _READ and key not in _CALLS and (cell := _first(rows, key))
    }
    qualifier, kd = _constant(values) if outcome is Outcome.MEASURED else (None, None)
    return DesignSummary(
        name=name,
        experiment_code="",
        result_type=ExperimentType.AFFINITY,
        outcome=outcome,
        qualifier=qualifier,
        kd_M=kd,
        replicates=len(rows),
        aa_string=residues or None,
        attributes=own,
        binding=_said(values, "binding"),
        binding_strength=_said(values, "binding_strength"),
        expression=_said(values, "expression"),
    )


def _constant(values: Sequence[Mapping[str, Any]]) -> tuple[str | None, float | None]:
    """K_D of the replicates in M, with `<` or `>` for a limit."""
    found: defaultdict[str | None, list[float]] = defaultdict(list)
    for value in values:
        if value["kd_M"]:
            found[value["qualifier"]].append(value["kd_M"])
    if None in found:
        return None, _geometric_mean(found[None])
    if len(found) != 1:  # nothing, or limits on both sides
        return None, None
    ((qualifier, limits),) = found.items()
    return qualifier, min(limits) if qualifier == ">" else max(limits)


def _geometric_mean(values: Sequence[float]) -> float:
    """Exact for a single value."""
    return values[0] if len(values) == 1 else geometric_mean(values)


def _first(rows: Sequence[Mapping[str, str]], key: str) -> str:
    return next((row[key] for row in rows if row[key]), "")


def _said(values: Sequence[Mapping[str, Any]], call: str) -> str | None:
    return next((value[call] for value in values if value[call]), None)


def _values(row: Mapping[str, str]) -> dict[str, Any]:
    """The columns of one replicate; K_D in M, None for what is no positive number, and `<` or `>` for a limit."""
    cell = next((row[key] for key in _KD if row.get(key)), "")
    try:
        kd = float(cell.lstrip("<>~ ")) if cell else None
    except ValueError:
        raise InputError(f"{row['at']}: kd is {cell[:40]!r}; write a number in M, or null") from None
    calls = {call: row.get(call, "").lower() for call in _CALLS}
    return {
        "kd_M": kd if kd is not None and math.isfinite(kd) and kd > 0 else None,
        "qualifier": cell[0] if cell[:1] in {"<", ">"} else None,
        **{call: _WORDS.get(word, word) or None for call, word in calls.items()},
    }
