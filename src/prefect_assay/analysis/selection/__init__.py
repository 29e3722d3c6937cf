"""Which designs to buy next: from a pool of candidates and what was measured before to a few choices with reasons.

Knows neither Prefect, the service nor the archive. Reading a history needs nothing; selecting needs the extra `design`.
"""

from collections.abc import Iterable

from prefect_assay.analysis.selection.history import (
    History,
    drop_repeats,
    make_history,
    read_history,
)
from prefect_assay.analysis.selection.track import (
    CALIBRATION,
    Calibration,
    MethodRecord,
    ScoreRecord,
    calibrate_chances,
    correlate_score,
    count_by_method,
)
from prefect_assay.designs.candidate import Candidate
from prefect_assay.designs.selection import Selection, SelectionSettings
from prefect_assay.errors import ConfigurationError
from prefect_assay.service.models.sequences import Pool

__all__ = [
    "CALIBRATION",
    "Calibration",
    "History",
    "MethodRecord",
    "ScoreRecord",
    "calibrate_chances",
    "correlate_score",
    "count_by_method",
    "drop_repeats",
    "make_history",
    "read_history",
    "select_designs",
]


def select_designs(
    pool: Pool | Iterable[Candidate],
    history: History,
    n: int,
    settings: SelectionSettings,
    *,
    price_cents: int | None = None,
    budget_cents: int | None = None,
    rounds_left: int | None = None,
) -> Selection:
    """Choose at most `n` designs, controls included, as many as the budget pays for.

    The same pool, history, settings and seed give the same choices in every process, whatever the order of the pool.

    Args:
        pool: `read_pool(...)`, or the candidates of a designer.
        history: `read_history(...)` or `make_history(...)`; empty before the first round.
        n: designs to buy at most.
        settings: policy, seed, columns and limits.
        price_cents: what one design costs, without VAT.
        budget_cents: what all may cost together; needs the price.
        rounds_left: purchases that follow this one; 0 for the last one, which explores nothing. It changes nothing for the aim best.

    Raises:
        InputError: a column, a control or the price is missing, or the controls alone are too many.
        ConfigurationError: the extra `design` is not installed.
    """
    try:
        from prefect_assay.analysis.selection.choose import choose_designs  # noqa: PLC0415  an optional extra
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in {"numpy", "scipy", "sklearn", "threadpoolctl"}:
            raise
        raise ConfigurationError.missing_extra("design", "selecting designs") from None
    return choose_designs(
        pool,
        history,
        n,
        settings,
        price_cents=price_cents,
        budget_cents=budget_cents,
        rounds_left=rounds_left,
    )
