"""Heavy and light chains of antibodies in records of their own: told by their domains, joined where the names agree."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from prefect_assay.designs.doubt import KEEP, pick_evenly
from prefect_assay.designs.options import ReadingOptions
from prefect_assay.designs.parts import MOTIFS, variable_domains
from prefect_assay.designs.readers.chain_labels import Side, find_label
from prefect_assay.designs.readers.columns import RUNS
from prefect_assay.designs.readers.complexes import CHOOSE
from prefect_assay.designs.readers.records import Rows, clean_residues
from prefect_assay.designs.tables.table import key_of
from prefect_assay.service.models.spec_rules import quoted
from prefect_assay.service.models.vocabulary import CHAIN_SEPARATOR
from prefect_assay.service.words import listed, many

_SAMPLE: Final = 100  # records that show whether antibodies are here
_COLUMN_SAMPLE: Final = 20
_MOSTLY_ANTIBODIES: Final = 0.6  # of the records: a target for each pair leaves two of three
_LISTED: Final = 3
_CELL_TITLES: Final = frozenset(
    map(key_of, ("cell id", "barcode", "pair id", "antibody", "antibody id", "antibody name", "mab"))
)
# Where a cell is from: each sample has barcodes of its own, which are also those of other samples.
_SAMPLE_TITLES: Final = frozenset(
    map(key_of, ("sample", "sample id", "donor", "subject id", "repertoire id", *RUNS))
)
_PRODUCTIVE: Final = "productive"
_FALSE: Final = frozenset({"f", "false", "0", "no"})
Groups = dict[str, dict[str, list[int]]]  # the records of each complex by the label of the chain
JOIN: Final = "write heavy and light chain of a design as HEAVY:LIGHT in one record, or in the columns heavy and light of one row"


class Columns:
    """The designer's columns of all rows, taken apart only where a sample has titles that matter here."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        titles: dict[str, None] = {}
        for extra in pick_evenly(rows.extras, _COLUMN_SAMPLE):
            titles |= dict.fromkeys(rows.unpack(extra))
        self.titles = tuple(titles)
        self._cells: list[Mapping[str, str]] | None = None

    def find(self, keys: Iterable[str]) -> str | None:
        """The title that is one of these."""
        key_set = set(keys)
        return next((title for title in self.titles if key_of(title) in key_set), None)

    @property
    def cells(self) -> list[Mapping[str, str]]:
        """The columns of each row."""
        if self._cells is None:
            self._cells = [self._rows.unpack(extra) for extra in self._rows.extras]
        return self._cells


@dataclass(frozen=True, slots=True)
class _Domains:
    """Records that are one chain with one variable domain."""

    heavy: set[int]
    light: set[int]

    def kind_of(self, index: int) -> Side | None:
        """The kind of a record's domain."""
        return "heavy" if index in self.heavy else "light" if index in self.light else None


def _find_domains(rows: Rows) -> _Domains | None:
    """The records with heavy and with light domains; None if there are not both."""
    kinds: Counter[str] = Counter()
    for text in pick_evenly(rows.residues, _SAMPLE):
        kinds.update(filter(None, [_domain_of(text)]))
    if not kinds:
        return None
    if len(kinds) == 1:  # a library of one kind: the other kind may be a single record
        motif = MOTIFS["light" if "heavy" in kinds else "heavy"]
        other = next(
            (text for text in rows.residues if motif in text and _domain_of(text) not in {None, *kinds}), None
        )
        if other is None:
            return None
    domains = _Domains(set(), set())
    for index, text in enumerate(rows.residues):
        kind = _domain_of(text)
        if kind:
            (domains.heavy if kind == "heavy" else domains.light).add(index)
    return domains


def _domain_of(text: str) -> str | None:
    """The kind of a record's only variable domain; None for several chains or domains."""
    if CHAIN_SEPARATOR in text:
        return None
    domains = variable_domains(clean_residues(text))
    return domains[0].name if len(domains) == 1 else None


def settle_antibodies(
    rows: Rows, columns: Columns, groups: Groups, reading: ReadingOptions, *, has_groups: bool
) -> bool:
    """Join heavy and light records, or ask; False if the file has not both, or a chain is chosen by its label.

    `groups` are complexes by a column; `has_groups` says whether there are complexes by column or name.
    """
    domains = _find_domains(rows)
    if domains is None:
        return False
    pairs, stems = _find_pairs(rows, columns, groups, domains)
    is_named = reading.chain is not None and re.fullmatch(r"[\d,: ]+", reading.chain) is None
    if is_named and has_groups and not reading.as_is:
        return False
    problem = _find_problem(rows, domains, pairs, stems)
    if problem is not None:
        rows.read.asked.append(problem)
        return True
    _say_not_productive(rows, columns)
    if pairs:
        _join_pairs(rows, pairs)
    return bool(pairs)


def _find_pairs(
    rows: Rows, columns: Columns, groups: Groups, domains: _Domains
) -> tuple[dict[str, tuple[int, int]], dict[int, str]]:
    """Heavy and light records of one stem or cell, by the name of the design; and the stem of each record that has one."""
    by_name: dict[int, str] = {}
    for index, name in enumerate(rows.names):
        label = find_label(name)
        kind = domains.kind_of(index)
        if label and (kind is None or label.side == kind):
            by_name[index] = label.stem
    by_column = {index: name for name, group in groups.items() for where in group.values() for index in where}
    for stems in (_stems_by_cell(columns), by_name, by_column):
        if pairs := _pair_domains(stems, domains):
            return pairs, stems
    return {}, {}


def _stems_by_cell(columns: Columns) -> dict[int, str]:
    """The cell or antibody of each row, by a column such as `cell_id`; behind its sample where several have it."""
    title = columns.find(_CELL_TITLES)
    if title is None:
        return {}
    sample_titles = [item for item in columns.titles if key_of(item) in _SAMPLE_TITLES]
    samples = [
        "".join(f"{cells[item].strip()}_" for item in sample_titles if item in cells)
        for cells in columns.cells
    ]
    cells_of_rows = [cells.get(title, "").strip() for cells in columns.cells]
    counts = Counter(cell for cell, _ in {*zip(cells_of_rows, samples, strict=True)})
    return {
        index: f"{sample}{cell}" if counts[cell] > 1 else cell
        for index, (cell, sample) in enumerate(zip(cells_of_rows, samples, strict=True))
        if cell
    }


def _pair_domains(stems: Mapping[int, str], domains: _Domains) -> dict[str, tuple[int, int]]:
    sides: dict[str, tuple[list[int], list[int]]] = {}
    for index, stem in stems.items():
        heavy, light = sides.setdefault(stem, ([], []))
        (heavy if index in domains.heavy else light if index in domains.light else []).append(index)
    return {
        stem: (heavy[0], light[0]) for stem, (heavy, light) in sides.items() if len(heavy) == len(light) == 1
    }


def _find_problem(
    rows: Rows,
    domains: _Domains,
    pairs: Mapping[str, tuple[int, int]],
    stems: Mapping[int, str],
) -> str | None:
    """The first record that does not fit into pairs, and why."""
    if not pairs:
        if len(domains.heavy) + len(domains.light) < _MOSTLY_ANTIBODIES * len(rows.names):
            return None  # a pool of designs of many kinds
        index = min(domains.light)
        return (
            f"line {rows.lines[index]}, {quoted(rows.names[index])}: this is a light chain of an antibody, {quoted(rows.names[min(domains.heavy)])} is "
            f"a heavy chain, and no label in their names says which belong together; {JOIN}, or order each record as a design of its own with "
            f"{KEEP}"
        )
    for heavy, light in pairs.values():
        is_control = [index in rows.controls for index in (heavy, light)]
        if rows.metadata.get(heavy) != rows.metadata.get(light) or len({*is_control}) > 1:
            return f"line {rows.lines[heavy]}, {quoted(rows.names[heavy])}: heavy and light chain differ in their columns; {JOIN}"
    paired = {index for pair in pairs.values() for index in pair}
    for index in range(len(rows.names)):
        if index not in paired and index not in rows.controls:
            problem = _find_misfit(rows, index, domains, pairs.get(stems.get(index, "")))
            if problem is not None:
                return f"line {rows.lines[index]}, {quoted(rows.names[index])}: {problem}"
    return None


def _find_misfit(rows: Rows, index: int, domains: _Domains, pair: tuple[int, int] | None) -> str | None:
    """Why a record outside of all pairs may be no design; `pair` has the same stem."""
    if pair is not None:
        return (
            f"this is another chain of the complex of which {quoted(rows.names[pair[0]])} is the heavy chain: is it the target? "
            f"Leave it out, name the designed chains with {CHOOSE}, as in H,L, or order it as a design of its own with {KEEP}"
        )
    label = find_label(rows.names[index])
    side = label.side if label else None
    kind = domains.kind_of(index)
    if kind and side and side != kind:
        return f"the name says {side} chain, and the residues are those of a {kind} chain; {JOIN}"
    if kind == "light" or side:
        return (
            "this is one chain of an antibody without the other, which other records have; add it, rename it, or order it as a "
            f"design of its own with {KEEP}"
        )
    is_other = CHAIN_SEPARATOR not in rows.residues[index] and not variable_domains(
        clean_residues(rows.residues[index])
    )
    if kind is None and is_other:
        return (
            "other records are heavy and light chains, and this one is not an antibody: is it the target? Leave it out, or order it "
            f"with {KEEP}"
        )
    return None


def _say_not_productive(rows: Rows, columns: Columns) -> None:
    title = columns.find({_PRODUCTIVE})
    if title is None:
        return
    names = [
        rows.names[index]
        for index, cells in enumerate(columns.cells)
        if cells.get(title, "").casefold() in _FALSE
    ]
    if names:
        rows.notes.append(
            f"{many(len(names), 'record is', 'records are')} not productive by the column {title}, and ordered: {listed([*map(quoted, names)], _LISTED)}"
        )


def _join_pairs(rows: Rows, pairs: Mapping[str, tuple[int, int]]) -> None:
    """Replace the two records of each pair by one design, heavy:light, where the first of them was."""
    partner: dict[int, tuple[str, int, int]] = {}
    for stem, (heavy, light) in pairs.items():
        name = stem if re.search("[A-Za-z]", stem) else f"{rows.names[heavy]}_{rows.names[light]}"
        partner[min(heavy, light)] = (name, heavy, light)
    gone = {max(pair) for pair in pairs.values()}
    for index, (name, heavy, light) in partner.items():
        chains = (rows.residues[heavy], rows.residues[light])
        rows.residues[index] = CHAIN_SEPARATOR.join(
            "".join(text.split()).removesuffix("*") for text in chains
        )
        rows.read.rename(rows.names[index], name)
        rows.names[index] = name
    rows.keep([index for index in range(len(rows.names)) if index not in gone])
    rows.notes.append(
        f"{many(len(pairs), 'pair of heavy and light chains was', 'pairs of heavy and light chains were')} joined as heavy:light, with the columns of the first record"
    )
