"""The 95 % interval of a reported K_D: from the scatter of its replicates, or else from the fit of their curves.

Affinities scatter in factors, so the interval is that of the mean of log10 K_D. Student's quantiles for the handful of
replicates that the service measures are a table of nine numbers, which needs no SciPy.
"""

import math
from collections.abc import Iterable, Sequence
from statistics import fmean, stdev
from typing import Final

from prefect_assay.results.kinetics.analysis import Estimate, ReplicateKinetics
from prefect_assay.results.row import Outcome, ResultRow

# Two-sided 95 % quantiles of Student's t by degrees of freedom. Beyond nine the last one serves: 2 % too wide at ten.
_STUDENT_T: Final = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
# The service averages the strong binders only, else a weaker class. Rounding of its mean is far below this.
_CLASSES: Final = ("strong", "medium", "weak")
_SAME_MEAN: Final = 0.01
_MODELS: Final = ("two_step", "global_1to1")  # the first one fits as the service does

Interval = tuple[float | None, float | None]
_UNKNOWN: Final[Interval] = (None, None)


def kd_interval(
    kd: float, replicates: Sequence[ResultRow], curves: Sequence[ReplicateKinetics] = ()
) -> Interval:
    """Lower and upper end in M of the 95 % interval of `kd`; a side that the data leave open is None.

    The replicates are those whose mean is `kd`. From two on their scatter gives the interval; for a single one it is that
    of the fit of its curves, if it holds `kd`: else it would be the interval of another value.
    """
    basis = averaged(kd, replicates)
    if len(basis) > 1:
        return scatter_interval([row.kd_M for row in basis if row.kd_M])
    if not basis and _measured(replicates):
        return _UNKNOWN  # a mean by a rule that is not known here: which scatter is its own is not, either
    numbers = {row.replicate for row in basis}
    fitted = [part for part in curves if not basis or part.replicate in numbers]
    return _own_interval(kd, fitted[0]) if len(fitted) == 1 else _UNKNOWN


def averaged(kd: float, replicates: Iterable[ResultRow]) -> tuple[ResultRow, ...]:
    """The replicates whose arithmetic or geometric mean is `kd` (M): of one class, else all; or none."""
    measured = _measured(replicates)
    classes = [tuple(row for row in measured if row.binding_strength == word) for word in _CLASSES]
    for rows in (*classes, measured):
        values = [row.kd_M for row in rows if row.kd_M]
        if values and any(
            math.isclose(mean, kd, rel_tol=_SAME_MEAN) for mean in (fmean(values), 10 ** _log_mean(values))
        ):
            return rows
    return ()


def scatter_interval(values: Sequence[float]) -> Interval:
    """The t interval of the mean of log10 of at least two positive values, in their unit."""
    center = _log_mean(values)
    quantile = _STUDENT_T[min(len(values) - 1, len(_STUDENT_T)) - 1]
    half = quantile * stdev(math.log10(value) for value in values) / math.sqrt(len(values))
    try:
        return 10 ** (center - half), 10 ** (center + half)
    except OverflowError:
        return _UNKNOWN


def _measured(replicates: Iterable[ResultRow]) -> tuple[ResultRow, ...]:
    return tuple(
        row
        for row in replicates
        if row.outcome is Outcome.MEASURED
        and row.kd_M is not None
        and math.isfinite(row.kd_M)
        and row.kd_M > 0
    )


def _log_mean(values: Sequence[float]) -> float:
    return fmean(math.log10(value) for value in values)


def _own_interval(kd: float, part: ReplicateKinetics) -> Interval:
    fits = (fit for model in _MODELS if (fit := part.fit(model)) is not None)
    return next((_ends(fit.kd_M) for fit in fits if _holds(fit.kd_M, kd)), _UNKNOWN)


def _ends(estimate: Estimate) -> Interval:
    return estimate.low, estimate.high


def _holds(estimate: Estimate, kd: float) -> bool:
    low, high = _ends(estimate)
    return (low is not None or high is not None) and (low or 0.0) <= kd <= (
        math.inf if high is None else high
    )
