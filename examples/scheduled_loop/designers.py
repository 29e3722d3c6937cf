"""A designer: point mutants of the best design so far. Put your own model here."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

WILD_TYPE = "SESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE"


def propose(
    history: Sequence[Any], n: int, budget_cents: int | None, round: int
) -> Iterator[dict[str, object]]:
    """Yield n mutants; the same history and round give the same ones, because a crash may ask again."""
    measured = [design for design in history if design.tm_C]
    best = max(measured, key=lambda design: design.tm_C, default=None)
    parent, residues = (best.name, best.aa_string) if best else ("wild type", WILD_TYPE)
    generator = random.Random(round)
    for number in range(n):
        site = generator.randrange(len(residues))
        mutant = residues[:site] + generator.choice("ADEFGHIKLMNPQRSTVWY") + residues[site + 1 :]
        yield {"name": f"r{round}-{number}", "sequence": mutant, "parents": [parent]}
