"""Records that are chains of one complex: told by labels in their names or in a column, and by the domains of antibodies.

Heavy and light chains whose names and domains agree are joined. Everything else is asked about, before it is ordered as
designs of its own.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from typing import Final

from prefect_assay.designs.doubt import KEEP, is_alike, pick_evenly
from prefect_assay.designs.options import ReadingOptions
from prefect_assay.designs.readers.antibody_records import (
    Columns,
    Groups,
    settle_antibodies,
)
from prefect_assay.designs.readers.chain_labels import (
    ENTITIES,
    Label,
    find_chain,
    find_label,
    has_target_word,
    is_called_target,
    split_name,
)
from prefect_assay.designs.readers.complexes import CHOOSE, Chain, take_named_chains
from prefect_assay.designs.readers.headers import DESCRIPTION
from prefect_assay.designs.readers.records import Rows, clean_residues
from prefect_assay.designs.tables.errors import UnreadableFile
from prefect_assay.designs.tables.table import key_of
from prefect_assay.service.models.spec_rules import quoted
from prefect_assay.service.words import listed, many

_SAMPLE: Final = 60  # records that show whether names have labels, and whether antibodies are here
_COLUMN_SAMPLE: Final = 20
_MOST: Final = 0.8
_CHAINS_MAX: Final = 4  # of one complex, where single letters are the only sign
_LISTED: Final = 3
_CHAIN_TITLES: Final = frozenset(
    map(
        key_of,
        ("chain", "chain id", "chain name", "chain type", "chain label", "chains", "locus", "auth chain"),
    )
)
_KIND_TITLES: Final = frozenset(map(key_of, ("chain type", "locus")))
_BINDER: Final = "BINDER"
_ROLES: Final = frozenset({_BINDER, "DESIGN", *map(str.upper, ENTITIES)})
# Two chains, alpha and beta chain, and a nanobody with its target, as antibody designers call them.
_PAIRS_OF_CHAINS: Final = ({"A", "B"}, {"ALPHA", "BETA"}, {"H", "A"}, {"H", "T"})
_SETS: Final = frozenset(
    {
        "round",
        "rd",
        "r",
        "set",
        "batch",
        "lib",
        "library",
        "pool",
        "plate",
        "p",
        "group",
        "run",
        "cluster",
        "v",
    }
)
_STRUCTURES: Final = frozenset({"complex", "structure", "model", "prediction", "pdb", "cif", "assembly"})
_LABEL_MAX: Final = 2  # letters
_LABELS: Final = frozenset({"IGH", "IGK", "IGL", "TRA", "TRB", "TRG", "TRD", "ALPHA", "BETA"})
_OF_EVERY_PLATE: Final = frozenset({"ctrl", "control", "ctl", "wt", "ref", "reference", "rep", "pos", "neg"})
_TARGET_TITLES: Final = frozenset(
    f"{entity}{end}" for entity in ENTITIES for end in ("", "s", "name", "id")
)  # what a design is for
_CELL_MAX: Final = 30  # letters: longer text is about anything
_COMPARED: Final = 3


def settle_chain_records(rows: Rows, reading: ReadingOptions, stem: str) -> None:
    """Join or take chains in records of their own, or note in `rows.read.asked` what has to be decided.

    Raises:
        UnreadableFile: `reading.chain` names a chain that a complex does not have, or the names repeat.
    """
    if rows.read.chain_taken:
        return
    names = "\n".join(rows.names).casefold()
    _ask_about_targets(rows, names)
    if len(rows.names) < 2:  # noqa: PLR2004 - one record is not a complex of several
        return
    columns = Columns(rows)
    by_name, by_column = _group_by_name(rows, names), _group_by_column(rows, columns)
    if settle_antibodies(rows, columns, by_column, reading, has_groups=bool(by_name or by_column)):
        return
    groups, why = (
        (by_name, "names that differ only by a label") if by_name else (by_column, "the label of a chain")
    )
    if not groups:
        return
    if reading.chain is not None and not reading.as_is:
        _take_labelled(rows, groups, reading.chain, stem)
        return
    complexes = {name: labels for name, labels in groups.items() if len(labels) > 1}
    name, labels = next(iter(complexes.items()))
    records = [rows.names[where[0]] for where in labels.values()]
    line = (
        f"{many(len(complexes), 'complex', 'complexes')} of several records, by {why}: {listed([*map(quoted, records)], _LISTED)} are chains "
        f"of {quoted(name or stem)}: is it the target? Name the designed chain with {CHOOSE}, as in {next(iter(labels))}, or order each "
        f"record as a design of its own with {KEEP}"
    )
    if len(set(rows.names)) < len(rows.names):  # or the names that repeat would be all that is reported
        raise UnreadableFile(line, rows.lines[0])
    rows.read.asked.append(line)


# -- columns


def _group_by_column(rows: Rows, columns: Columns) -> Groups:
    """Rows of one complex, where a column says which chain each is and another column or the order says of what."""
    title = columns.find(_CHAIN_TITLES)
    if title is not None:
        labels = [cells.get(title, "").strip().upper() for cells in columns.cells]
    elif DESCRIPTION in columns.titles:
        labels = [find_chain(cells.get(DESCRIPTION, "")) for cells in columns.cells]
    else:
        return {}
    kinds = {label for label in labels if label}
    are_labels = all(map(_is_label, kinds))
    if len(kinds) < 2 or not (are_labels or _may_be_words_of_chains(title, kinds, labels)):  # noqa: PLR2004 - nothing differs
        return {}
    # Other words, as `monomer`, are labels where several complexes have one of these chains.
    is_sure = are_labels or not _ROLES.isdisjoint(kinds)
    others = [item for item in columns.titles if item not in {title, DESCRIPTION}]
    for values in (rows.names, *([cells.get(item, "") for cells in columns.cells] for item in others)):
        groups = _group_chains(values, labels)
        several = [group for group in groups.values() if len(group) > 1]
        is_one_each = all(len(where) == 1 for group in several for where in group.values())
        if several and is_one_each and sum(map(len, several)) >= _MOST * len(rows.names):
            return groups if is_sure or _has_shared_chain(rows, groups) else {}
    period = len(kinds)
    if all(label == labels[index % period] for index, label in enumerate(labels)):
        groups = _group_chains([rows.names[index - index % period] for index in range(len(labels))], labels)
        return groups if is_sure or _has_shared_chain(rows, groups) else {}
    return {}


def _is_label(text: str) -> bool:
    return len(text) <= _LABEL_MAX or text in _LABELS or find_label(text) is not None


def _may_be_words_of_chains(title: str | None, kinds: Collection[str], labels: Sequence[str]) -> bool:
    """Whether words such as `binder` and `EGFR` may be labels: they come again, under a title that is not about kinds of chains."""
    is_label = title is not None and (key_of(title) not in _KIND_TITLES or _BINDER in kinds)
    return is_label and 2 * len(kinds) <= sum(map(bool, labels))


def _group_chains(values: Sequence[str], labels: Sequence[str]) -> Groups:
    groups: defaultdict[str, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for index, (value, label) in enumerate(zip(values, labels, strict=True)):
        if value and label:
            groups[value][label].append(index)
    return {value: dict(group) for value, group in groups.items()}


# -- names


def _labels_of(names: Sequence[str], folded: str) -> list[Label | None]:
    """The label of each name; empty if a sample has none. `folded` is all names in lower case."""
    if "chain" in folded or any(map(find_label, [*names[:_SAMPLE], *pick_evenly(names, _SAMPLE)])):
        return [find_label(name) for name in names]
    return []


def _group_by_name(rows: Rows, folded: str) -> Groups:
    """Records whose names differ only by the label of a chain, or by a letter where more than that shows a complex."""
    labels = _labels_of(rows.names, folded)
    for is_plain, is_whole in ((True, True), (True, False), (False, True)):
        groups: Groups = {}
        for index, label in enumerate(labels):
            stem = label.stem if label and is_whole else label.before if label else ""
            if label and (label.is_plain or not is_plain) and (is_whole or stem):
                groups.setdefault(stem, {}).setdefault(label.label, []).append(index)
        several = {stem: group for stem, group in groups.items() if len(group) > 1}
        several = {} if is_plain and _is_numbering(several) else several
        if several and (is_plain or _do_letters_name_chains(rows, groups, several)):
            return groups
    return {}


def _is_numbering(several: Groups) -> bool:
    """Whether the labels only count many designs, as in `chain_1` to `chain_12`."""
    return len(several) == 1 and all(
        len(group) > _CHAINS_MAX and all(map(str.isdecimal, group)) for group in several.values()
    )


def _do_letters_name_chains(rows: Rows, groups: Groups, several: Groups) -> bool:
    """Whether single letters at the end are chains: nearly all records have them, and those of one stem are unrelated.

    `groups` are all stems with their labels, `several` those with more than one label.

    Letters also tell variants, families and unrelated designs of a round apart. So they count where a chain is under several stems,
    or where there are two of each stem and the stem is of one design.
    """
    records = sum(len(where) for group in several.values() for where in group.values())
    if records < _MOST * len(rows.names) or max(map(len, several.values())) > _CHAINS_MAX:
        return False
    if not _has_shared_chain(rows, several):
        is_pair = all(
            group.keys() in _PAIRS_OF_CHAINS or group.keys() > {"H", "L"} for group in several.values()
        )
        of_designs = sum(map(_is_of_one_design, several)) >= _MOST * len(several)
        if not is_pair or not of_designs:
            return False
        if len(several) == 1 and (len(groups) > 1 or rows.read.columns):
            return False
    for group in pick_evenly([*several.values()], _COLUMN_SAMPLE):
        first, second = (rows.residues[where[0]] for where in list(group.values())[:2])
        if first != second and is_alike(clean_residues(first), clean_residues(second)):
            return False
    return True


def _is_of_one_design(stem: str) -> bool:
    """Whether a name without its letter is that of one design: it has a number, and is not a round or a plate."""
    words = {word.casefold() for word in split_name(stem)}
    return not words or bool(words & _STRUCTURES) or (any(map(str.isdecimal, words)) and not words & _SETS)


def _has_shared_chain(rows: Rows, several: Groups) -> bool:
    """Whether one label has the same residues under several stems."""
    for label in {label for group in several.values() for label in group}:
        chains = [rows.residues[group[label][0]] for group in several.values() if label in group]
        if len(chains) > 1 and len(set(chains)) == 1:
            return True
    return False


def ask_about_repeated(rows: Rows) -> None:
    """Note one sequence next to each design: under several stems of names, or in every second or third record.

    The residues are checked ones.
    """
    number = len(rows.residues)
    if number < 2 * 2 or rows.read.asked or rows.read.chain_taken:
        return
    places: defaultdict[str, list[int]] = defaultdict(list)
    for index, residues in enumerate(rows.residues):
        places[residues].append(index)
    repeated = [
        (residues, where)
        for residues, where in places.items()
        if len(where) > 1 and not _are_controls(rows, where)
    ]
    under_stems = _find_repeated_chains(rows, [where for _, where in repeated])
    for position, (residues, where) in enumerate(repeated):
        if _is_periodic(where, number) or position in under_stems:
            others = [text for text in pick_evenly(rows.residues, _COLUMN_SAMPLE) if text != residues][
                :_COMPARED
            ]
            if others and not any(
                is_alike(clean_residues(residues), clean_residues(text)) for text in others
            ):
                names = listed([quoted(rows.names[index]) for index in where], _LISTED)
                rows.read.asked.append(
                    f"{len(where):,} of {number:,} records have the same residues, and the rest of their names belongs to other records: "
                    f"{names}: is it the target? Leave it out of the file, or order it once, as a design, with {KEEP}"
                )
                return


def _are_controls(rows: Rows, where: Sequence[int]) -> bool:
    return all(_OF_EVERY_PLATE & {*map(str.casefold, split_name(rows.names[index]))} for index in where)


def _is_periodic(where: Sequence[int], number: int) -> bool:
    step = where[1] - where[0]
    return 1 < step < _CHAINS_MAX and [*where] == [*range(where[0] % step, number, step)]


def _find_repeated_chains(rows: Rows, repeated: Sequence[Sequence[int]]) -> set[int]:
    """Positions in `repeated` of groups whose records differ by stem only, such as one target in every complex."""
    under_stems: set[int] = set()
    if not repeated:
        return under_stems
    for is_fine, end in itertools.product((False, True), (-1, 0)):
        names = [split_name(name, is_fine=is_fine) or [""] for name in rows.names]
        rests = [tuple(words[:-1] if end else words[1:]) for words in names]
        counts = Counter(rests)
        for position, where in enumerate(repeated):
            labels, stems = {names[index][end] for index in where}, {rests[index] for index in where}
            if len(labels) > 1 or () in stems or len(stems) < len(where):
                continue
            is_block = where[-1] - where[0] == len(where) - 1
            if is_block and (end == 0 or labels.pop().isdecimal()):
                continue  # all samples of one backbone are the same
            # Each stem occurs once in the group, so all others are outside it.
            if sum(counts[stem] > 1 for stem in stems) >= _MOST * len(stems):
                under_stems.add(position)
    return under_stems


def _take_labelled(rows: Rows, groups: Groups, chosen: str, stem: str) -> None:
    at_of: dict[int, tuple[str, str]] = {
        index: (name, label)
        for name, group in groups.items()
        for label, where in group.items()
        for index in where
    }
    chains = []
    for index, name in enumerate(rows.names):
        entry, label = at_of.get(index, (name, ""))
        chains.append(Chain(entry or stem, (label,), rows.residues[index], rows.lines[index], row=index))
    take_named_chains(rows, rows.read.format or "records", chains, chosen)


# -- targets


def _ask_about_targets(rows: Rows, folded: str) -> None:
    """Note records that are called what designs bind, and rows of which a column says so."""
    titles = [title for extra in rows.extras[:1] for title in rows.unpack(extra)]
    searched = (folded, "\n".join(rows.extras).casefold(), "\n".join(titles).casefold())
    if not any(word in text for text in searched for word in ENTITIES):
        return
    designs = [index for index in range(len(rows.names)) if index not in rows.controls]
    named = [
        index
        for index in designs
        if has_target_word(rows.names[index], is_name=True) or has_target_word(_read_description(rows, index))
    ]
    if 2 * len(named) > len(designs):  # the designs are called after their target
        named = []
    in_column = [index for index in designs if _column_says_target(rows, index)]
    if len(in_column) == len(designs):  # it tells nothing apart
        in_column = []
    called = [index for index in designs if is_called_target(rows.names[index])]
    chosen = sorted({*named, *in_column, *called})
    if chosen:
        names = listed([quoted(rows.names[index]) for index in chosen], _LISTED)
        rows.read.asked.append(
            f"a record is called {names}: it looks like what the designs bind; leave it out of the file, or take it as a design with {KEEP}"
        )


def _read_description(rows: Rows, index: int) -> str:
    """The free text of a header's line; a table has columns, whose text may be about anything."""
    return "" if rows.read.columns else rows.unpack(rows.extras[index]).get("description", "")


def _column_says_target(rows: Rows, index: int) -> bool:
    """Whether a cell of a row is `target`, `antigen chain` or the like, or a column such as `is_target` is true."""
    for title, cell in rows.unpack(rows.extras[index]).items():
        if len(cell) < _CELL_MAX and is_called_target(cell) and key_of(title) not in _TARGET_TITLES:
            return True
        if key_of(title) in {"istarget", "isantigen"} and cell.casefold() in {"true", "t", "yes", "y", "1"}:
            return True
    return False
