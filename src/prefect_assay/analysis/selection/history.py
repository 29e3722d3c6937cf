"""What was measured before: tables of this package and of the public competition, one `DesignSummary` per design.

Non-binders, designs that did not express and open orders are rows like all others. A measurement that several tables have
counts once. Needs no NumPy.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, Never, TypeVar

from pydantic import BaseModel, ValidationError

from prefect_assay.analysis.results import (
    COLUMNS,
    DesignSummary,
    Level,
    Outcome,
    ResultRow,
    summarize,
)
from prefect_assay.analysis.results.affinity import (
    Affinity,
    AffinityColumns,
    UnclearAffinity,
    affinity_columns,
    find_affinity_columns,
    read_affinities,
    unclear_titles,
)
from prefect_assay.analysis.results.calls import (
    CALL_FIELDS,
    Call,
    CallField,
    read_call,
)
from prefect_assay.analysis.results.formats import read_content
from prefect_assay.analysis.results.quantities import SIGNS
from prefect_assay.analysis.results.repeats import get_residues, split_by_target
from prefect_assay.analysis.results.tidy import find_outcome
from prefect_assay.analysis.selection.merging import Entry, merge_entries, summarize_replicates
from prefect_assay.designs.chains import describe_mangled_names
from prefect_assay.designs.readers.columns import (
    CONTROL_WORDS,
    NAME,
    OPTIONAL,
    SEQUENCE,
)
from prefect_assay.designs.tables.errors import NoHeader, UnreadableFile
from prefect_assay.designs.tables.table import Row, key_of, read_table
from prefect_assay.errors import InputError
from prefect_assay.service.models.vocabulary import ExperimentType
from prefect_assay.service.words import many

Table = str | bytes | Path
_M = TypeVar("_M", bound=BaseModel)
_TIDY: Final = frozenset({"experiment_code", "result_id", "level", "name", "outcome"})
_SUMMARY: Final = frozenset({"name", "outcome"})
_FIELDS: Final = frozenset(DesignSummary.model_fields) - {"attributes", "reasons"}
_EMPTY: Final = frozenset({"", "null", "na", "n/a", "nan"})  # "none" is a call: no expression, no strength
# How a call is kept in the column `binding`.
_BINDING: Final = {
    Call.BINDS: "true",
    Call.DOES_NOT_BIND: "false",
    Call.IN_PROGRESS: "in_progress",
    Call.NOT_STATED: None,
}
_DASH: Final = "- without any +"
_QUOTED: Final = 5  # words of a column that a note quotes
_NUMBER: Final = "replicate"
_TARGET: Final = "target"
_RATES: Final = ("kon", "koff")


@dataclass(frozen=True, slots=True)
class History:
    """Designs of earlier rounds with their outcomes; `notes` says what was read in a special way, one line each."""

    designs: tuple[DesignSummary, ...] = ()
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.designs)


def make_history(designs: Iterable[DesignSummary], notes: Sequence[str] = ()) -> History:
    """The history of designs that are in memory, such as the summary of a campaign."""
    kept = tuple(designs)
    if nameless := sum(not get_residues(design) for design in kept):
        more = f"{nameless} of {len(kept)} measured designs have no residues: they count only for hit rates"
        notes = (*notes, more)
    return History(kept, tuple(notes))


def read_history(*tables: Table, kd_unit: str | None = None) -> History:
    """Read `results.csv`, `summary.csv`, `prefect-assay results --csv` or files with the competition's columns.

    Args:
        tables: each as a path, an `s3://bucket/key` address, bytes, or text with line ends.
        kd_unit: the unit of K_D in tables whose titles do not say it, such as `nM`.

    Raises:
        InputError: there is no such file, or it is not such a table; the faulty row is named.
        ServiceUnavailable: the object storage did not answer; try again later.
    """
    entries: list[Entry] = []
    notes: list[str] = []
    places: set[str] = set()
    for number, table in enumerate(tables, start=1):
        is_pasted = isinstance(table, bytes) or "\n" in str(table) or "\r" in str(table)
        place = "the given table" if is_pasted else str(table)
        label = f"{place} (table {number})" if place in places else place
        places.add(place)
        reader = _Reader(place, label, kd_unit)
        entries += reader.read(table)
        notes += [f"{label}: {note}" for note in reader.notes]
    designs, merged = merge_entries(entries)
    return make_history(
        designs, (*notes, *describe_mangled_names([design.name for design in designs]), *merged)
    )


def drop_repeats(designs: Iterable[DesignSummary], place: str) -> History:
    """Designs of one place without those that are there twice, by the code of their experiment."""
    kept, notes = merge_entries(Entry(design, (place,)) for design in designs)
    return History(tuple(kept), tuple(notes))


class _Reader:
    """Reads one table; `place` names it in errors, `label` in notes, where two tables may have one name."""

    def __init__(self, place: str, label: str, kd_unit: str | None) -> None:
        self._place = place
        self._label = label
        self._kd_unit = kd_unit
        self.notes: list[str] = []
        self._titles: tuple[str, ...] = ()
        self._delimiter: str | None = None
        self._rows: list[Row] = []
        self._labels: list[str] = []  # of each row; files that were joined are several tables

    def read(self, table: Table) -> list[Entry]:
        self._read_cells(read_content(table))
        if set(COLUMNS) >= set(self._titles) >= _TIDY:
            return self._read_results()
        if set(self._titles) >= _SUMMARY:
            return list(self._read_summary())
        return self._read_measurements()

    def _read_cells(self, data: bytes) -> None:
        try:
            table = read_table(data, _is_history)
            self._titles, self._delimiter = table.titles, table.delimiter
            width = len(self._titles)
            for line, cells in table.rows:
                if wrong := table.misfit(cells):
                    self._refuse(line, wrong)
                self._rows.append((line, [*cells, *[""] * (width - len(cells))][:width]))
        except NoHeader as error:
            raise InputError(f"{self._place}, line {error.line}: {_advise(error.titles)}") from None
        except UnreadableFile as error:
            raise InputError(error.at(self._place)) from None
        self.notes += table.notes
        if table.parts:
            lines = ", ".join(map(str, table.parts))
            self.notes.append(
                f"{len(table.parts) + 1} tables in one file; the header is repeated in line {lines}"
            )
        parts = [sum(part < line for part in table.parts) for line, _ in self._rows]
        self._labels = [f"{self._label}, part {part + 1}" if part else self._label for part in parts]

    def _refuse(self, line: int, problem: str) -> Never:
        raise InputError(f"{self._place}, line {line}: {problem}")

    def _validate(self, model: type[_M], line: int, values: Mapping[str, Any]) -> _M:
        try:
            return model.model_validate(values, strict=False)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            self._refuse(line, f"column {first['loc'][0]}: {first['msg']}")

    def _read_results(self) -> list[Entry]:
        """A table of the archive."""
        rows: defaultdict[str, list[ResultRow]] = defaultdict(list)
        replicates: defaultdict[tuple[str, str, str], list[ResultRow]] = defaultdict(list)
        for label, (line, cells) in zip(self._labels, self._rows, strict=True):
            values = dict(zip(self._titles, cells, strict=True))
            row = self._validate(ResultRow, line, {**values, "qualifier": self._read_sign(line, values)})
            rows[label].append(row)
            if row.level is Level.REPLICATE:
                replicates[label, row.name, row.experiment_code].append(row)
        return [
            Entry(design, (label,), tuple(replicates[label, design.name, design.experiment_code]))
            for label, part in rows.items()
            for design in summarize(part)
        ]

    def _read_summary(self) -> Iterator[Entry]:
        """Rows of `summary.csv` or of the table of all campaigns; columns without a meaning here are the designer's."""
        affinities = self._read_affinities([{}] * len(self._rows))
        control = _find_column(self._titles, OPTIONAL["control"])
        target = _find_column(self._titles, (_TARGET,))
        used = {*self._find_affinities().used, control}
        read = {
            *_FIELDS,
            *COLUMNS,
            "reasons",
            *(t for column, t in enumerate(self._titles) if column in used),
        }
        for label, (line, cells), affinity in zip(self._labels, self._rows, affinities, strict=True):
            row = dict(zip(self._titles, cells, strict=True))
            if row.get("level", Level.SUMMARY) != Level.SUMMARY:
                continue
            known: dict[str, Any] = {title: cell for title, cell in row.items() if title in _FIELDS and cell}
            known["qualifier"] = self._read_sign(line, row)
            known["control"] = self._read_control(line, cells, control) or None
            known["target"] = _read_cell(cells, target) or None
            if affinity.kd_M is not None:
                known |= {"kd_M": affinity.kd_M, "qualifier": affinity.qualifier or known["qualifier"]}
            columns = {title: cell for title, cell in row.items() if cell and title not in read}
            values = {"experiment_code": "", **known, "attributes": columns}
            yield Entry(self._validate(DesignSummary, line, values), (label,))

    def _read_measurements(self) -> list[Entry]:
        """A table of the competition or another program: a row per design, or one per replicate."""
        rows = [cells for _, cells in self._rows]
        columns = _Columns.find(self._titles, rows, self._find_affinities().used)
        calls = [columns.read_calls(cells) for cells in rows]
        self.notes += _describe_unread_words(self._titles, columns, calls)
        affinities = self._read_affinities(calls)
        target = _find_column(self._titles, (_TARGET,))
        entries: dict[tuple[str, str, str], list[tuple[ResultRow, dict[str, str], str]]] = {}
        for label, (line, cells), call, affinity in zip(
            self._labels, self._rows, calls, affinities, strict=True
        ):
            is_control = self._read_control(line, cells, columns.control)
            row = columns.make_row(cells, call, affinity, is_control=is_control)
            others = {
                self._titles[column]: cells[column]
                for column in columns.others
                if cells[column].lower() not in _EMPTY
            }
            parts = entries.setdefault((label, row.name, row.aa_string or ""), [])
            parts.append((row, others, _read_cell(cells, target)))
        return [
            _make_entry(label, *zip(*of_target, strict=True), has_replicates=columns.number is not None)
            for (label, _, _), parts in entries.items()
            for of_target in split_by_target(parts, itemgetter(2))
        ]

    def _read_control(self, line: int, cells: Sequence[str], column: int | None) -> bool:
        word = _read_cell(cells, column).casefold() or "false"
        if word not in CONTROL_WORDS:
            self._refuse(line, f"control is {word[:40]!r}; write true or false")
        return CONTROL_WORDS[word]

    def _read_affinities(self, calls: Sequence[Mapping[str, str]]) -> list[Affinity]:
        """K_D of each row. The number next to a negative or an unknown call is not read."""
        width = len(self._titles)
        rows = [
            cells if find_outcome({**called, "kd_M": 1.0}) is Outcome.MEASURED else [""] * width
            for (_, cells), called in zip(self._rows, calls, strict=True)
        ]
        with self._refusing_unclear():
            affinities, notes = read_affinities(
                self._titles, rows, unit=self._kd_unit, delimiter=self._delimiter
            )
        self.notes += notes
        return affinities

    def _find_affinities(self) -> AffinityColumns:
        with self._refusing_unclear():
            return find_affinity_columns(self._titles, [cells for _, cells in self._rows])

    @contextmanager
    def _refusing_unclear(self) -> Iterator[None]:
        try:
            yield
        except UnclearAffinity as error:
            if error.at is not None:
                self._refuse(self._rows[error.at][0], error.problem)
            raise InputError(f"{self._place}: {error.problem}") from None

    def _read_sign(self, line: int, row: Mapping[str, str]) -> str | None:
        """The qualifier of a row of this package's tables."""
        word = row.get("qualifier", "")
        if word and word not in SIGNS:
            self._refuse(
                line, f"column qualifier: {word[:40]!r} is not a sign; write < or >, or leave it empty"
            )
        return SIGNS[word] if word else None


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a table of measurements by their positions; `others` are the designer's."""

    name: int
    sequence: int | None
    number: int | None
    control: int | None
    calls: Mapping[CallField, int]
    dashed: frozenset[str]
    others: tuple[int, ...]

    @classmethod
    def find(
        cls, titles: Sequence[str], rows: Sequence[Sequence[str]], affinities: frozenset[int]
    ) -> "_Columns":
        name, sequence = _find_column(titles, NAME), _find_column(titles, SEQUENCE)
        number, control = _find_column(titles, (_NUMBER,)), _find_column(titles, OPTIONAL["control"])
        calls: dict[CallField, int] = {
            field: column
            for field, aliases in CALL_FIELDS.items()
            if (column := _find_column(titles, aliases)) is not None
        }
        rates = {_find_column(titles, (rate,)) for rate in _RATES}
        used = {name, sequence, number, control, *calls.values(), *rates, *affinities}
        dashed = frozenset(
            field for field, position in calls.items() if any(cells[position] == "+" for cells in rows)
        )
        others = tuple(column for column in range(len(titles)) if column not in used)
        return cls(name or 0, sequence, number, control, calls, dashed, others)

    def read_calls(self, cells: Sequence[str]) -> dict[str, str]:
        """The words of a row's calls, as they came.

        A dash is a call where the column also has a plus. Elsewhere it may stand for an empty cell, and is not a known word.
        """
        return {
            field: _DASH if cells[column] == "-" and field not in self.dashed else cells[column]
            for field, column in self.calls.items()
        }

    def make_row(
        self, cells: Sequence[str], called: Mapping[str, str], affinity: Affinity, *, is_control: bool
    ) -> ResultRow:
        number = _read_cell(cells, self.number)
        words = dict(called)
        if affinity.binds is False and read_call(called.get("binding")).call is Call.NOT_STATED:
            words["binding"] = "false"
        values: dict[str, Any] = {"kd_M": affinity.kd_M, "qualifier": affinity.qualifier}
        outcome = find_outcome({**words, **values})
        values |= {field: _read_cell(cells, column).lower() or None for field, column in self.calls.items()}
        values["binding"] = _BINDING.get(read_call(words.get("binding")).call, "unknown")
        return ResultRow(
            result_type=ExperimentType.AFFINITY.value,
            level=Level.REPLICATE,
            name=cells[self.name],
            replicate=int(number) if number.isdecimal() else None,
            control=is_control or None,
            outcome=outcome,
            aa_string=_read_cell(cells, self.sequence) or None,
            **values,
        )


def _make_entry(
    label: str,
    rows: Sequence[ResultRow],
    columns: Sequence[Mapping[str, str]],
    targets: Sequence[str],
    *,
    has_replicates: bool,
) -> Entry:
    """One design on one target: its replicates, and the first cell of each of the designer's columns."""
    attributes: dict[str, str] = {}
    for cells in reversed(columns):
        attributes |= cells
    calls = {field: next(filter(None, (getattr(row, field) for row in rows)), None) for field in CALL_FIELDS}
    design = DesignSummary(
        name=rows[0].name,
        experiment_code="",
        result_type=ExperimentType.AFFINITY,
        target=next(filter(None, targets), None),
        aa_string=rows[0].aa_string,
        attributes=attributes,
        control=any(row.control for row in rows) or None,
        **calls,
        **summarize_replicates(rows),
    )
    return Entry(design, (label,), tuple(rows) if has_replicates or len(rows) > 1 else ())


def _describe_unread_words(
    titles: Sequence[str], columns: _Columns, calls: Sequence[Mapping[str, str]]
) -> Iterator[str]:
    """A note for each column with words that are not a known call, which quotes them."""
    for field, column in columns.calls.items():
        words = (read_call(row.get(field), field).unread for row in calls)
        unread = Counter(word for word in words if word is not None)
        if not unread:
            continue
        quoted = ", ".join(repr(word[:40]) for word in list(unread)[:_QUOTED])
        more = len(unread) - _QUOTED
        rows = many(unread.total(), "row")
        yield (
            f"{titles[column]} is {quoted}{f' or one of {more:,} other words' if more > 0 else ''} in {rows}, which is not a known word for a "
            "call (docs/results.md): the outcome is unknown, and the number next to it is not ranked, counted or learned from; rename the column if it holds no calls"
        )


def _has_measurements(titles: Sequence[str]) -> bool:
    return bool(affinity_columns(titles).values) or _find_column(titles, CALL_FIELDS["binding"]) is not None


def _is_history(titles: Sequence[str]) -> bool:
    """Whether a line is the header of a table that is read here."""
    plain = [title.strip() for title in titles]
    return set(plain) >= _SUMMARY or (_has_measurements(plain) and _find_column(plain, NAME) is not None)


def _advise(titles: Sequence[str]) -> str:
    unclear = ", ".join(map(repr, unclear_titles(titles)))
    what = f"the unit of {unclear} is not clear" if unclear else "no table of results"
    if _has_measurements(titles):
        what = f"a table of measurements without names of designs ({', '.join(NAME[:4])})"
    return (
        f"{what}; a history needs the columns name and outcome, or name and K_D with its unit, such as 'KD (nM)', or name "
        f"and binding, and this line has [{', '.join(title[:40] for title in titles[:20])}]; give results.csv, summary.csv, "
        "a competition file, or rename the columns"
    )


def _find_column(titles: Sequence[str], aliases: Sequence[str]) -> int | None:
    keys = [key_of(title) for title in titles]
    return next((keys.index(key) for alias in aliases if (key := key_of(alias)) in keys), None)


def _read_cell(cells: Sequence[str], column: int | None) -> str:
    """A cell; empty for the words that mean no value. Names are never read with it: a design may be called NA."""
    cell = "" if column is None else cells[column]
    return "" if cell.lower() in _EMPTY else cell
