"""Reading a user's landscape: a CSV file with exact titles, refused with its line and column where it is anything else.

One row says something about one sequence, against one `target` or, without that column, against all.
"""

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Never

from assay_lab.errors import ConfigurationError
from assay_lab.measure.assays import ASSAY_TYPES
from assay_lab.measure.bundled import CATALOG
from assay_lab.measure.gb1 import Gb1
from assay_lab.measure.landscape import Facts, Landscape, Lookup, target_record
from assay_lab.vocabulary import AMINO_ACIDS, CHAIN_SEPARATOR

BUNDLED: Final = "gb1"
_CLASSES: Final[Mapping[str, frozenset[str]]] = {
    "binding": frozenset({"true", "false", "unknown"}),
    "expression": frozenset({"high", "medium", "low", "none"}),
}
_UNCLEAR: Final[Mapping[str, str]] = {
    r"(log\w*_|p)?k_?d(_.*)?|(log\w*_)?affinity(_.*)?": "kd_M, kd_uM, kd_nM or kd_pM",
    r"t_?m(_\w|_mean)?|melting_temperature": "tm_C",  # and not tm_score
    r"k_?on(_(?!log_std)\w+)?": "kon_per_M_s",
    r"yield(_\w+)?": "yield_mg_per_l",
    "sequence|target|binding|expression|aa_string": "sequence, target, binding or expression, as it is written here",
}
"""Titles that look like one of the columns, without case and brackets, and what to name them."""
_PROTEIN: Final = frozenset({"tm_C", "expression", "yield_mg_per_l"})
"""What does not depend on the target."""
# Columns next to a K_D that hold something else: its scatter, its interval, its quality.
_BESIDE: Final = re.compile(
    r"_(log_?std|std(ev)?|sd|sem?|cv|err\w*|low(er)?|high(er)?|upper|ci\d*|min|max|app|r2|rmse|n|rank|score)(_|$)"
)


@dataclass(frozen=True, slots=True)
class _Column:
    """A column with values: the fact it gives, and the unit of its cells. `low` and `high` catch a wrong unit."""

    fact: str
    per_unit: float = 1.0  # the number is divided by it
    low: float = 0.0
    high: float = math.inf


# No assay gives a K_D below 1 fM or above 0.1 M.
_COLUMNS: Final[Mapping[str, _Column]] = {
    **{
        title: _Column("kd_M", per_molar, low=1e-15, high=0.1)
        for title, per_molar in (("kd_M", 1.0), ("kd_uM", 1e6), ("kd_nM", 1e9), ("kd_pM", 1e12))
    },
    "tm_C": _Column("tm_C", high=130.0),
    "kon_per_M_s": _Column("kon_per_M_s", low=1.0, high=1e10),
    "yield_mg_per_l": _Column("yield_mg_per_l", high=1e6),
    "binding": _Column("binding"),
    "expression": _Column("expression"),
}


def open_landscape(name_or_path: str) -> Landscape:
    """The bundled landscape `gb1`, or that of a CSV file.

    Raises:
        ConfigurationError: the file is missing or unclear; the message names file, line, column and what to change.
    """
    return Gb1() if name_or_path == BUNDLED else read_landscape(Path(name_or_path))


@dataclass(slots=True)
class TableLandscape:
    """A table that was read. `bound` has the binding facts by target (in lower case, empty for all) and residues."""

    name: str
    attribution: str | None = None
    targets: tuple[dict[str, Any], ...] = ()
    facts: frozenset[str] = frozenset()
    bound: Mapping[str, Mapping[str, Facts]] = field(default_factory=dict)
    proteins: Mapping[str, Facts] = field(default_factory=dict)

    def lookup(self, experiment_type: str, target: Mapping[str, Any] | None) -> Lookup | None:
        """Binding where the table has the target; melting and expression where it has the column."""
        kind = ASSAY_TYPES[experiment_type]
        if not kind.takes_target:
            return self._protein(kind.landscape_facts)
        tables = [self.bound[key] for key in (*_list_keys(target or {}), "") if key in self.bound]
        return _chain_tables(tables, self.proteins) if tables else None

    def _protein(self, fact_names: frozenset[str]) -> Lookup | None:
        if not fact_names & self.facts:
            return None

        def find(residues: str) -> Facts | None:
            facts = self.proteins.get(residues, {})
            return facts if fact_names & facts.keys() or facts.get("expression") == "none" else None

        return find


def _chain_tables(tables: list[Mapping[str, Facts]], proteins: Mapping[str, Facts]) -> Lookup:
    def find(residues: str) -> Facts | None:
        bound = next((table[residues] for table in tables if residues in table), None)
        protein = proteins.get(residues, {})
        if bound is None and protein.get("expression") != "none":
            return None
        return {**protein, **(bound or {"binding": "unknown"})}

    return find


def _list_keys(target: Mapping[str, Any]) -> Iterator[str]:
    """By what a table may name a target."""
    names = ("id", "catalog_number", "uniprot_id", "name")
    return (str(target[name]).casefold() for name in names if target.get(name))


def read_landscape(path: Path) -> TableLandscape:
    """Read and check a whole table; the titles and rules are in lab/docs/lab-measurements.md."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ConfigurationError(
            f"landscape {path}: cannot be read ({error}); give a table, or {BUNDLED}"
        ) from error
    except UnicodeDecodeError:
        raise ConfigurationError(
            f"landscape {path}: no text in UTF-8; save the table as CSV in UTF-8, or give {BUNDLED}"
        ) from None
    return _Reader(path, text).read()


class _Reader:
    """One table, with the line of what is being read for messages."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._rows = csv.DictReader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True)
        self._line = 0
        self._columns: dict[str, _Column] = {}
        self._read: dict[tuple[str, str, str], tuple[Any, int]] = {}

    def _refuse(self, problem: str, column: str | None = None) -> Never:
        where = "" if column is None else f", column {column!r}"
        raise ConfigurationError(f"landscape {self._path}, line {self._line}{where}: {problem}")

    def read(self) -> TableLandscape:
        """The landscape."""
        targets: dict[str, str] = {}
        try:
            self._read_titles()
            for row in self._rows:
                self._line = self._rows.line_num
                if any(row.values()):
                    self._read_row(row, targets)
        except csv.Error as error:
            self._line += 1  # where the row begins
            self._refuse(
                f"the row does not parse ({error}); check its quotes, and quote cells that contain a comma"
            )
        if not self._read:
            self._refuse("the table has no measurements; add rows below the titles")
        return self._landscape(targets)

    def _read_titles(self) -> None:
        titles: dict[str, str] = {}
        written = self._rows.fieldnames or ()
        self._line = 1
        for title in written:
            if title in _COLUMNS:
                self._columns[title] = _COLUMNS[title]
                fact = _COLUMNS[title].fact
            elif title in {"sequence", "target"}:
                fact = title
            else:
                self._refuse_unclear_title(title)
                continue
            if fact in titles:
                self._refuse(f"{titles[fact]!r} says the same; leave one of the two out", title)
            titles[fact] = title
        if not written:
            self._refuse("the file is empty; write a table as CSV")
        if "sequence" not in titles:
            self._refuse("no column 'sequence'; add one with the residues, and separate columns by commas")
        if not self._columns:
            self._refuse(
                "no column with values; add kd_M, kd_nM, binding, tm_C, yield_mg_per_l or expression"
            )

    def _refuse_unclear_title(self, title: str) -> None:
        """Raise for a title that looks like one of the columns and is not written like it."""
        plain = re.sub(r"[^0-9a-z]+", "_", title.casefold().replace("\N{GREEK SMALL LETTER MU}", "u")).strip(
            "_"
        )
        for pattern, titles in _UNCLEAR.items():
            if re.fullmatch(pattern, plain) and not _BESIDE.search(plain):
                self._refuse(f"this column is not clear; name it {titles}", title)

    def _read_row(self, row: dict[str, str], targets: dict[str, str]) -> None:
        """Check the residues of a row, and keep its facts."""
        if any(row.pop(None, ())):  # type: ignore[call-overload] # where DictReader keeps the cells without a title
            self._refuse(f"more cells than the {len(row)} columns; quote cells that contain a comma")
        cells = {title: (cell or "").strip() for title, cell in row.items()}
        residues = re.sub(r"\s", "", cells["sequence"]).upper()
        if not residues or not all(residues.split(CHAIN_SEPARATOR)):
            self._refuse("an empty sequence or chain; give its residues", "sequence")
        if wrong := sorted(set(residues) - AMINO_ACIDS - {CHAIN_SEPARATOR}):
            letters = ", ".join(map(ascii, wrong))
            self._refuse(f"no amino acids: {letters}; use the 20 standard letters", "sequence")
        target = cells.get("target", "")
        if "target" in cells and not target:
            self._refuse("empty; name the target, or leave the column out for all targets", "target")
        targets.setdefault(target.casefold(), target)
        facts = {
            column.fact: self._read_value(column, cells[title], title)
            for title, column in self._columns.items()
            if cells[title]
        }
        for fact, value in self._complete_facts(facts).items():
            self._keep(("" if fact in _PROTEIN else target.casefold(), residues, fact), value)

    def _read_value(self, column: _Column, text: str, title: str) -> float | str:
        if words := _CLASSES.get(column.fact):
            if text not in words:
                self._refuse(f"{text!r} is not one of {', '.join(sorted(words))}", title)
            return text
        try:
            value = float(text) / column.per_unit
        except ValueError:
            self._refuse(
                f"{text!r} is not a number; leave the cell empty without a value, and mark a design that does not bind with"
                " 'false' in a column 'binding'",
                title,
            )
        if not column.low <= value <= column.high:
            self._refuse(
                f"{text} is {value:g} in the unit of {column.fact}, outside {column.low:g} to {column.high:g}; is the"
                " unit in the title right?",
                title,
            )
        return value

    def _complete_facts(self, facts: dict[str, Any]) -> dict[str, Any]:
        """The facts of a row with the call that its K_D implies; contradictions are refused."""
        if "kd_M" in facts:
            if facts.setdefault("binding", "true") != "true":
                self._refuse(
                    f"binding is {facts['binding']!r} and there is a K_D; leave one of the two empty"
                )
            if facts.get("expression") == "none":
                self._refuse("expression is 'none' and there is a K_D; leave one of the two empty")
        elif facts.get("binding") == "true":
            self._refuse("binding is 'true' without a K_D; give its K_D, or leave binding empty")
        elif "kon_per_M_s" in facts:
            self._refuse("k_on without a K_D; give the K_D as well")
        return facts

    def _keep(self, key: tuple[str, str, str], value: Any) -> None:
        known, line = self._read.setdefault(key, (value, self._line))
        if known != value:
            target, _, fact = key
            against = f" against {target!r}" if target else ""
            self._refuse(
                f"{fact} of this sequence{against} is {value}, and {known} in line {line}; keep one of the two,"
                " or their mean"
            )

    def _landscape(self, targets: Mapping[str, str]) -> TableLandscape:
        bound: dict[str, dict[str, dict[str, Any]]] = {}
        proteins: dict[str, dict[str, Any]] = {}
        for (target, residues, fact), (value, _) in self._read.items():
            table = proteins if fact in _PROTEIN else bound.setdefault(target, {})
            table.setdefault(residues, {})[fact] = value
        catalog = {key for record in CATALOG for key in _list_keys(record)}
        unknown = [name for key, name in targets.items() if key and key not in catalog]
        return TableLandscape(
            name=self._path.name,
            targets=tuple(
                target_record(f"LANDSCAPE-{number:03d}", name, description=f"Target of {self._path.name}")
                for number, name in enumerate(unknown, 1)
            ),
            facts=frozenset(column.fact for column in self._columns.values()),
            bound=bound,
            proteins=proteins,
        )
