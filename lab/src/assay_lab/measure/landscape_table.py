"""Reading a user's landscape: a table whose titles carry units, refused with its line and column where it is unclear.

One row says something about one sequence, against one `target` or, without that column, against all.
"""

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
from assay_lab.measure.table_file import TextTable, UnreadableTable, read_text_table
from assay_lab.vocabulary import AMINO_ACIDS, CHAIN_SEPARATOR

BUNDLED: Final = "gb1"
ZERO_CELSIUS_K: Final = 273.15

_SEQUENCE: Final = frozenset({"sequence", "aa_string"})
_CLASSES: Final[Mapping[str, frozenset[str]]] = {
    "binding": frozenset({"true", "false", "unknown"}),
    "expression": frozenset({"high", "medium", "low", "none"}),
}
_UNCLEAR: Final[Mapping[str, str]] = {
    r"(log\w*_|p)?k_?d(_.*)?|(log\w*_)?affinity(_.*)?": "kd_M, kd_nM, kd_pM or pKD",
    r"tm(_\w|_mean)?|melting_temperature": "tm_C or tm_K",  # and not tm_score
    r"kon(_(?!log_std)\w+)?": "kon_per_M_s",
    r"yield(_\w+)?": "yield_mg_per_l",
}
"""Titles that look like a value without a unit, or with one that is not known, and what to name them."""
_PROTEIN: Final = frozenset({"tm_C", "expression", "yield_mg_per_l"})
"""What does not depend on the target."""
# Columns next to a K_D that hold something else: its scatter, its interval, its quality.
_BESIDE: Final = re.compile(
    r"_(log_?std|std(ev)?|sd|sem?|cv|err\w*|low(er)?|high(er)?|upper|ci\d*|min|max|app|r2|rmse|n|rank|score)(_|$)"
)
_EMPTY: Final = frozenset({"", "null"})
_NOT_DETERMINED: Final = frozenset({"n.d.", "nd", "n/a", "na", "nan", "-"})
_NO_BINDING: Final = frozenset({"nb", "n.b.", "no binding"})
_THOUSANDS: Final = re.compile(r"[1-9]\d{0,2}(,\d{3})+")


@dataclass(frozen=True, slots=True)
class _Column:
    """A column with values: the fact it gives, and how its cells are read. `low` and `high` catch a wrong unit."""

    fact: str
    per_unit: float = 1.0  # the number is divided by it
    is_negative_log: bool = False
    offset: float = 0.0
    low: float = 0.0
    high: float = math.inf

    def convert(self, number: float) -> float:
        """The value of a number in the unit of the fact."""
        linear = 10.0**-number if self.is_negative_log else number
        return linear / self.per_unit + self.offset


def _kd_column(per_molar: float = 1.0, *, is_negative_log: bool = False) -> _Column:
    """A column of K_D; no assay gives one below 1 fM or above 0.1 M."""
    return _Column("kd_M", per_unit=per_molar, is_negative_log=is_negative_log, low=1e-15, high=0.1)


_COLUMNS: Final[Mapping[str, _Column]] = {
    "kd_m": _kd_column(),
    "kd_mm": _kd_column(1e3),
    "kd_um": _kd_column(1e6),
    "kd_nm": _kd_column(1e9),
    "kd_pm": _kd_column(1e12),
    "pkd": _kd_column(is_negative_log=True),
    "tm_c": _Column("tm_C", low=0.0, high=130.0),
    "tm_k": _Column("tm_C", offset=-ZERO_CELSIUS_K, low=0.0, high=130.0),
    "kon_per_m_s": _Column("kon_per_M_s", low=1.0, high=1e10),
    "yield_mg_per_l": _Column("yield_mg_per_l", high=1e6),
    "binding": _Column("binding"),
    "expression": _Column("expression"),
}


def open_landscape(given: str) -> Landscape:
    """The bundled landscape `gb1`, or that of a CSV file.

    Raises:
        ConfigurationError: the file is missing or unclear; the message names file, line, column and what to change.
    """
    return Gb1() if given == BUNDLED else read_landscape(Path(given))


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

    def _protein(self, wanted: frozenset[str]) -> Lookup | None:
        if not wanted & self.facts:
            return None

        def find(residues: str) -> Facts | None:
            facts = self.proteins.get(residues, {})
            return facts if wanted & facts.keys() or facts.get("expression") == "none" else None

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
        return _Reader(path, read_text_table(path)).read()
    except UnreadableTable as error:
        line = "" if error.line is None else f", line {error.line}"
        raise ConfigurationError(
            f"landscape {path}{line}: {error.problem}; give a table, or {BUNDLED}"
        ) from error
    except OSError as error:
        raise ConfigurationError(
            f"landscape {path}: cannot be read ({error}); give a table, or {BUNDLED}"
        ) from error


class _Reader:
    """One table, with the line of what is being read for messages."""

    def __init__(self, path: Path, table: TextTable) -> None:
        self._path = path
        self._table = table
        self._titles = table.titles
        self._line = table.title_line
        self._columns: dict[int, _Column] = {}
        self._read: dict[tuple[str, str, str], tuple[Any, int]] = {}

    def _refuse(self, problem: str, column: int | None = None) -> Never:
        where = "" if column is None else f", column {self._titles[column]!r}"
        raise ConfigurationError(f"landscape {self._path}, line {self._line}{where}: {problem}")

    def read(self) -> TableLandscape:
        """The landscape."""
        self._header()
        targets: dict[str, str] = {}
        for line, cells in self._table.rows:
            self._line = line
            self._row(cells, targets)
        if not self._read:
            self._refuse("the table has no measurements; add rows below the titles")
        return self._landscape(targets)

    def _header(self) -> None:
        named: dict[str, int] = {}
        for index, written in enumerate(self._titles):
            title = _normalize_title(written)
            fact = "sequence" if title in _SEQUENCE else "target" if title == "target" else None
            if column := _COLUMNS.get(title):
                fact = column.fact
                self._columns[index] = column
            if fact is None:
                self._refuse_unclear(title, index)
                continue
            if fact in named:
                self._refuse(f"{self._titles[named[fact]]!r} says the same; leave one of the two out", index)
            named[fact] = index
        if "sequence" not in named:
            self._refuse("no column 'sequence'; add one with the residues")
        if not self._columns:
            self._refuse(
                "no column with values; add kd_M, kd_nM, binding, tm_C, yield_mg_per_l or expression"
            )
        self._sequence, self._target = named["sequence"], named.get("target")

    def _refuse_unclear(self, title: str, index: int) -> None:
        """A title that looks like a value has its unit."""
        for look, better in _UNCLEAR.items():
            if re.fullmatch(look, title) and not _BESIDE.search(title):
                self._refuse(f"the unit of this column is not clear; name it {better}", index)

    def _row(self, cells: tuple[str, ...], targets: dict[str, str]) -> None:
        residues = re.sub(r"\s", "", cells[self._sequence]).upper()
        if not residues or not all(residues.split(CHAIN_SEPARATOR)):
            self._refuse("an empty sequence or chain; give its residues", self._sequence)
        if wrong := sorted(set(residues) - AMINO_ACIDS - {CHAIN_SEPARATOR}):
            letters = ", ".join(map(ascii, wrong))
            self._refuse(f"no amino acids: {letters}; use the 20 standard letters", self._sequence)
        facts: dict[str, Any] = {}
        for index, column in self._columns.items():
            facts |= self._facts(column, cells[index], index)
        target = "" if self._target is None else cells[self._target]
        if self._target is not None and not target:
            self._refuse("empty; name the target, or leave the column out for all targets", self._target)
        targets.setdefault(target.casefold(), target)
        for fact, value in self._agreeing(facts).items():
            self._keep(("" if fact in _PROTEIN else target.casefold(), residues, fact), value)

    def _facts(self, column: _Column, text: str, index: int) -> dict[str, Any]:
        """What one cell says; a word in place of a K_D is a call, and a limit is refused."""
        word = text.casefold()
        if word in _EMPTY or (column.fact == "kd_M" and word in _NOT_DETERMINED):
            return {}
        if column.fact != "kd_M":
            return {column.fact: self._value(column, text, index)}
        if word in _NO_BINDING:
            return {"no_binding": True}
        if word[0] in "<>≤≥":
            self._refuse(
                f"a limit ({word[0]}) is not a K_D to measure; give its value, or mark a design that does not bind with"
                " 'false' in a column 'binding'",
                index,
            )
        return {"kd_M": self._value(column, text, index)}

    def _value(self, column: _Column, text: str, index: int) -> float | str:
        if words := _CLASSES.get(column.fact):
            if text.casefold() not in words:
                self._refuse(f"{text!r} is not one of {', '.join(sorted(words))}", index)
            return text.casefold()
        try:
            value = column.convert(float(self._with_point(text, index)))
        except (ValueError, OverflowError):
            self._refuse(f"{text!r} is not a number; leave the cell empty without a value", index)
        if not column.low <= value <= column.high:
            self._refuse(
                f"{text} is {value:g} in the unit of {column.fact}, outside {column.low:g} to {column.high:g}; is the"
                " unit in the title right?",
                index,
            )
        return value

    def _with_point(self, text: str, index: int) -> str:
        """A number with a decimal point, where the delimiter allows a decimal comma."""
        if self._table.delimiter == "," or "," not in text:
            return text
        if _THOUSANDS.fullmatch(text):
            self._refuse(f"{text} may be a thousand or a fraction; write it with a decimal point", index)
        return text.replace(",", ".")

    def _agreeing(self, facts: dict[str, Any]) -> dict[str, Any]:
        """The facts of a row with the call that its K_D implies; contradictions are refused."""
        if facts.pop("no_binding", False) and facts.setdefault("binding", "false") != "false":
            self._refuse(f"no binding, and binding is {facts['binding']!r}; keep one of the two")
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


def _normalize_title(title: str) -> str:
    """A title without case, brackets and separators: `T_m (°C)` is `tm_c`."""
    words = re.sub(r"[^0-9a-z]+", "_", title.casefold().replace("\N{GREEK SMALL LETTER MU}", "u")).strip("_")
    return re.sub(r"^(t|k)_(m|on|d)(?=_|$)", r"\1\2", words)
