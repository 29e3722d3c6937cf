"""`DesignSummary`, one row of the summary table, and the order of its rows. Pure.

Report, `summary.csv`, `prefect-assay results`, the table of all campaigns and the history of selection are this one table.
"""

import math
from typing import Any, Final

from pydantic import Field

from prefect_assay.analysis.kinetics.analysis import Verdict
from prefect_assay.analysis.results.row import Outcome, ResultRow, add_quantity_columns
from prefect_assay.service.assays import KD, MAIN_QUANTITIES, Objective, QuantityKind, find_assay_type
from prefect_assay.service.models.base import StoredModel

_TIERS: Final = {outcome: place for place, outcome in enumerate(Outcome)}
_STRENGTHS: Final = {"strong": 0, "medium": 1, "weak": 2}


@add_quantity_columns
class DesignSummary(StoredModel):
    """One design of one experiment. Units as in `ResultRow`; intervals are 95 % intervals of the value before them; the price is without VAT.

    `kd_M` is the geometric mean over the `replicates_averaged`, or a limit with its `qualifier`. `reported_kd_M` is the
    laboratory's own mean over `replicates_reported` of the `replicates` (None: over which, is not known). Designs of one
    `group` of ranks cannot be told apart from its first one. `fold` is how many times tighter than the control `reference` it is.
    `extrapolated`: K_D is above the highest concentration that was measured. `simulated`: a local lab has answered in place of
    the service; `data_source` is its word for where the values are from, `model` or `landscape` for values that it made up.
    `attributes` are the designer's own columns (method, ipTM, round, ...), as they were in the input file.
    """

    name: str
    campaign_id: str = ""
    experiment_code: str
    result_type: str = ""
    target: str | None = None
    control: bool | None = None
    expects_binding: bool | None = None  # of a control
    outcome: Outcome
    qualifier: str | None = None
    kd_M: float | None = None  # noqa: N815
    kd_low_M: float | None = None  # noqa: N815
    kd_high_M: float | None = None  # noqa: N815
    extrapolated: bool = False
    replicates_averaged: int | None = None
    reported_kd_M: float | None = None  # noqa: N815
    reported_qualifier: str | None = None
    replicates_reported: int | None = None
    kon_per_M_s: float | None = None  # noqa: N815
    koff_per_s: float | None = None
    tm_C: float | None = None  # noqa: N815
    tm_low_C: float | None = None  # noqa: N815
    tm_high_C: float | None = None  # noqa: N815
    reported_tm_C: float | None = None  # noqa: N815
    concentration_nM: float | None = None  # noqa: N815
    binding: str | None = None
    binding_strength: str | None = None
    expression: str | None = None
    replicates: int = 0
    verdict: Verdict | None = None
    reasons: tuple[str, ...] = ()
    group: str | None = None
    reference: str | None = None
    fold: float | None = None
    doubts: tuple[str, ...] = ()
    simulated: bool = False
    data_source: str | None = None
    price_cents: float | None = None
    aa_string: str | None = None
    attributes: dict[str, str] = Field(default_factory=dict)


MADE_UP: Final = frozenset({"model", "landscape"})


def find_main_quantity(design: DesignSummary | ResultRow) -> QuantityKind | None:
    """The quantity that ranks a design, and that its qualifier is about: the first of the table of assay types that it has a value of."""
    return next(
        (kind for kind in MAIN_QUANTITIES if getattr(design, kind.column) is not None),
        None,
    )


def find_objective(design: DesignSummary) -> Objective | None:
    """What the assay of a design measures; None where that is not a value that a selection can improve."""
    kind = find_assay_type(design.result_type)
    if design.kd_M is not None or design.binding:
        return Objective.AFFINITY
    return kind.hits_by if kind else None


def is_made_up(design: DesignSummary) -> bool:
    """Whether a local lab made the values up, so that they mean nothing about a protein."""
    return design.data_source in MADE_UP


def get_sort_key(design: DesignSummary) -> tuple[Any, ...]:
    """What designs are sorted by: binders by K_D, lower limits after all others, then calls, then the other outcomes."""
    last = (design.name, design.experiment_code)
    if design.outcome is Outcome.MEASURED and design.kd_M is not None:
        return (0, design.qualifier == ">", design.kd_M, 0, *last)
    if design.outcome is Outcome.BINDING:
        strength = _STRENGTHS.get(design.binding_strength or "", len(_STRENGTHS))
        return (1, False, strength, 0, *last)
    values = (_rank_by(design, quantity) for quantity in MAIN_QUANTITIES if quantity is not KD)
    return (2 + _TIERS[design.outcome], False, *values, *last)


def _rank_by(design: DesignSummary, quantity: QuantityKind) -> float:
    """A number that is lower for a better design; infinite without a value."""
    value: float | None = getattr(design, quantity.column)
    if value is None:
        return math.inf
    return value if quantity.lower_is_better else -value
