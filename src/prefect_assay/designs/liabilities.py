"""Points out motifs and lengths that often spoil a measurement, before a well is paid. Pure.

Nothing is refused: a motif in a sequence says nothing about the fold, and some are wanted. docs/designs.md has sources.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final

from prefect_assay.service.models.spec_rules import quoted
from prefect_assay.service.models.vocabulary import CHAIN_SEPARATOR
from prefect_assay.service.words import listed, many

SHORTEST: Final = 30  # residues of a chain; shorter ones are made by chemical synthesis
LONGEST: Final = 600  # residues of a chain, some 66 kDa
_LISTED: Final = 3

# Lookahead, because sites may overlap: NNSS has two.
_GLYCOSYLATION = re.compile(r"N(?=[^P:][ST])")
_DEAMIDATION = re.compile("NG")
_ISOMERIZATION = re.compile("DG")
_HIS_TAG = re.compile("H{6,}")


def _has_odd_cysteines(residues: str) -> bool:
    """Over all chains, because disulfide bonds may join them."""
    return residues.count("C") % 2 == 1


def _has_odd_length(residues: str) -> bool:
    return not all(SHORTEST <= len(chain) <= LONGEST for chain in residues.split(CHAIN_SEPARATOR))


_KINDS: Final[tuple[tuple[Callable[[str], object], str], ...]] = (
    (_has_odd_cysteines, "an odd number of cysteines, so at least one is unpaired"),
    (_GLYCOSYLATION.search, "an N-glycosylation site (N-X-S/T, X not P)"),
    (_DEAMIDATION.search, "NG, which deamidates"),
    (_ISOMERIZATION.search, "DG, which isomerizes"),
    (_HIS_TAG.search, "a His tag (six or more H); a tag that the laboratory adds would be a second one"),
    (
        _has_odd_length,
        f"a chain outside {SHORTEST} to {LONGEST} residues, which cell-free expression makes reliably",
    ),
)


def design_warnings(designs: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """One line per kind of warning with the number of designs and the first names.

    Args:
        designs: pairs of name and residues, upper case, chains separated by a colon.
    """
    pairs = list(designs)
    lines = []
    for has, what in _KINDS:
        names = [name for name, residues in pairs if has(residues)]
        if names:
            named = listed([*map(quoted, names)], _LISTED)
            lines.append(
                f"{len(names)} of {many(len(pairs), 'design')} {'has' if len(names) == 1 else 'have'} {what}: {named}"
            )
    return tuple(lines)
