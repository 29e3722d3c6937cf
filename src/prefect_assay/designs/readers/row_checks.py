"""Do the other columns of a row agree with its chains? Designed residues, kinds of antibody domains, single-chain constructs."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from prefect_assay.designs.doubt import KEEP
from prefect_assay.designs.parts import variable_domains
from prefect_assay.designs.readers.columns import PAIRS
from prefect_assay.designs.readers.records import DOMAINS, Rows
from prefect_assay.designs.tables.table import key_of
from prefect_assay.service.models.spec_rules import quoted
from prefect_assay.service.models.vocabulary import CHAIN_SEPARATOR
from prefect_assay.service.words import listed, many

_LISTED: Final = 3
_PAIR_KEYS: Final = frozenset((key_of(heavy), key_of(light)) for heavy, light in PAIRS) | {
    (key_of("sequence_alignment_aa_heavy"), key_of("sequence_alignment_aa_light"))
}
_HEAVY_END = re.compile("WG.G[ST]")
_LIGHT_END = re.compile("FG.G[ST]")
_SINGLE_CHAIN = re.compile(r"(?<![a-z])sc-?fv|single[ _-]?chain")
_SINGLE_TYPES: Final = frozenset({"ScFv", "SingleChain"})
_DESIGNED = re.compile("designedsequence([0-9]*)")


def compare_rows_with_columns(rows: Rows) -> None:
    """Note in `rows.read.asked` the rows whose columns say that they are another protein than their chains."""
    titles = tuple(map(key_of, rows.read.columns.get("sequence", "").split(", ")))
    if titles in _PAIR_KEYS:
        _compare_sides(rows, dict(enumerate(rows.residues)), rows.read.columns["sequence"])
    domains = {
        index: [metadata.get(title, "") for title in DOMAINS] for index, metadata in rows.metadata.items()
    }
    _compare_sides(
        rows, {index: CHAIN_SEPARATOR.join(pair) for index, pair in domains.items()}, ", ".join(DOMAINS)
    )
    if CHAIN_SEPARATOR in "".join(rows.residues):
        _compare_constructs(rows)
    if (rows.read.producer or "").startswith("BoltzGen"):
        _compare_designed(rows)


def _add_question(rows: Rows, places: list[int], what: str, advice: str) -> None:
    if places:
        names = listed([quoted(rows.names[index]) for index in places], _LISTED)
        rows.read.asked.append(f"{many(len(places), 'row')}, {names}: {what}; {advice}")


def _compare_sides(rows: Rows, pairs: Mapping[int, str], titles: str) -> None:
    """Columns of heavy and light chains, against the domains that are in them; `pairs` has both cells of each row."""
    wrong = [index for index, residues in pairs.items() if not _sides_agree(residues)]
    _add_question(
        rows,
        wrong,
        f"the residues of {titles} are not a heavy and a light chain in this order",
        f"give each chain in its own column, or order the chains as they are with {KEEP}",
    )


def _sides_agree(residues: str) -> bool:
    heavy, _, light = residues.partition(CHAIN_SEPARATOR)
    if _HEAVY_END.search(heavy) and not _LIGHT_END.search(heavy) and (not light or _LIGHT_END.search(light)):
        return True  # as nearly all rows are; the domains take longer
    kinds_found = [
        {part.name for part in variable_domains("".join(chain.split()).upper())} for chain in (heavy, light)
    ]
    return kinds_found[0] != {"light"} and kinds_found[1] != {"heavy"}


def _compare_constructs(rows: Rows) -> None:
    """Rows of several chains that are called a single chain, or that have a linker."""
    cells = "\n".join((*rows.names, *rows.extras)).casefold()
    if not rows.metadata and not _SINGLE_CHAIN.search(cells) and "linker" not in _list_titles(rows):
        return
    wrong = [
        index
        for index, residues in enumerate(rows.residues)
        if CHAIN_SEPARATOR in residues and any(_is_single_chain(rows, index))
    ]
    _add_question(
        rows,
        wrong,
        "it is called a single chain or has a linker, and is read as several chains",
        f"give the whole chain, with its linker, in a column sequence, or order the chains apart with {KEEP}",
    )


def _list_titles(rows: Rows) -> str:
    return key_of(" ".join(title for extra in rows.extras[:1] for title in rows.unpack(extra)))


def _is_single_chain(rows: Rows, index: int) -> Iterator[bool]:
    metadata = rows.metadata.get(index, {})
    yield metadata.get("type") in _SINGLE_TYPES or bool(metadata.get("linker"))
    yield _SINGLE_CHAIN.search(str(metadata.get("molecule_class", "")).casefold()) is not None
    yield _SINGLE_CHAIN.search(rows.names[index].casefold()) is not None
    for title, cell in rows.unpack(rows.extras[index]).items():
        is_linker = "linker" in key_of(title) and re.fullmatch("[A-Za-z]{5,}", cell) is not None
        yield is_linker or (
            len(cell.split()) <= _LISTED and _SINGLE_CHAIN.search(cell.casefold()) is not None
        )


def _compare_designed(rows: Rows) -> None:
    """The designed residues of BoltzGen are all in the chains, in their order; else a designed chain is not in the table."""
    wrong = [index for index in range(len(rows.names)) if not all(_find_designed_residues(rows, index))]
    _add_question(
        rows,
        wrong,
        "the residues of designed_sequence are not all in the chain, so another designed chain is missing",
        f"write the table again with all designed chains, or order this chain alone with {KEEP}",
    )


def _find_designed_residues(rows: Rows, index: int) -> Iterator[bool]:
    """For each column designed_sequence, whether its residues are in the chain in their order."""
    chains = "".join(rows.residues[index].split()).split(CHAIN_SEPARATOR)
    for title, cell in rows.unpack(rows.extras[index]).items():
        match = _DESIGNED.fullmatch(key_of(title))
        if match is None:
            continue
        number = int(match[1] or 0)
        whole = "".join(chains) if not number or len(chains) < number else chains[number - 1]
        letters = iter(whole.upper())
        # Each `in` goes on where the one before has stopped: the residues are looked for in their order.
        yield all(residue in letters for residue in cell.upper() if residue.isalpha() and residue != "X")
