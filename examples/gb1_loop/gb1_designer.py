"""The designer of the example: which variants of GB1 the next round measures, from what the lab has reported so far.

The first round is random, the others are chosen by the policy `gp` of `prefect_assay.analysis.selection`. It knows which variants
there are, and never their fitness.
"""

import os
from collections.abc import Iterable
from functools import cache
from typing import Final

from assay_lab.measure import gb1
from prefect_assay.analysis.results import DesignSummary
from prefect_assay.analysis.selection import make_history, select_designs
from prefect_assay.designs.candidate import Candidate
from prefect_assay.designs.proposed import pool_of
from prefect_assay.designs.selection import SelectionSettings
from prefect_assay.service.models.sequences import Pool

SEED: Final = "GB1_SEED"
"""Variable with the seed of the loop that is running."""


@cache
def library() -> Pool:
    """All 149,361 variants of the landscape; each is called by its residues at the four sites."""
    return pool_of(
        Candidate(name=four, sequence=gb1.make_sequence(four)) for four in sorted(gb1.load_fitness())
    )


def propose(
    history: Iterable[DesignSummary],
    n: int,
    budget_cents: int | None,
    round: int,
) -> list[Candidate]:
    """The designs of one round (docs/loops.md)."""
    seed = int(os.environ[SEED])
    settings = (
        SelectionSettings(policy="random", seed=seed)
        if round == 1
        else SelectionSettings(aim="best", seed=seed)
    )
    chosen = select_designs(library(), make_history(history), n, settings)
    return [Candidate.of(choice.design()) for choice in chosen.choices]
