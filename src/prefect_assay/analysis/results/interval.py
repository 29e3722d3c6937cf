"""The mean of a design's replicates with its 95 % interval, from a variance that all designs of a campaign share.

Two or three replicates say little about their own scatter: at 0.156 decades, Student's t on two of them spans a factor of 640.
Designs of one assay scatter alike, so the squares are pooled. Affinities scatter in factors: their values are log10 K_D. The
quantiles are closed formulas, which need no SciPy.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean
from typing import Final

from prefect_assay.analysis.kinetics.analysis import Estimate, ReplicateKinetics
from prefect_assay.analysis.results.row import Outcome, ResultRow

# Two-sided 95 % quantiles of Student's t up to nine degrees of freedom; beyond, the expansion is good to four digits.
_STUDENT_T: Final = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
_NORMAL: Final = 1.959964
_SURE: Final = 3.09  # one in a thousand: a scatter that differs so clearly is not pooled
_FEWEST: Final = 2  # replicates that have a scatter
# The service averages the strong binders only, else a weaker class. Rounding of its mean is far below this.
_CLASSES: Final = ("strong", "medium", "weak")
_SAME_MEAN: Final = 0.01

Interval = tuple[float | None, float | None]


@dataclass(frozen=True, slots=True)
class Scatter:
    """A variance between replicates, its degrees of freedom, and how many designs it is from, those of earlier campaigns too."""

    variance: float
    freedom: int
    designs: int
    earlier: int = 0

    @property
    def deviation(self) -> float:
        """The standard deviation of one replicate."""
        return math.sqrt(self.variance)


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of replicates, with its standard error and the degrees of freedom of that error.

    `is_own`: the replicates scatter more than others of the campaign, so the error is from them alone.
    """

    value: float
    count: int
    error: float | None = None
    freedom: int = 0
    is_own: bool = False

    @property
    def interval(self) -> Interval:
        """The 95 % interval; (None, None) where no scatter is known."""
        if self.error is None:
            return None, None
        half = compute_student_t(self.freedom) * self.error
        return self.value - half, self.value + half


def pool_scatter(
    designs: Iterable[Sequence[float]], earlier: Iterable[Sequence[float]] = ()
) -> Scatter | None:
    """The variance within designs, pooled; None without a design that has two values.

    A design that scatters clearly more than all others is left out. Those of `earlier` campaigns count, unless they scatter
    clearly less or more than these.
    """
    current, before = _pool_alike(designs), _pool_alike(earlier)
    if current is None or before is None:
        return current or (
            before and Scatter(before.variance, before.freedom, before.designs, before.designs)
        )
    ratio = current.variance / before.variance if before.variance else math.inf
    if not _is_larger(ratio, current.freedom, before.freedom) and not _is_larger(
        1 / ratio if ratio else math.inf, before.freedom, current.freedom
    ):
        freedom = current.freedom + before.freedom
        squares = current.variance * current.freedom + before.variance * before.freedom
        return Scatter(squares / freedom, freedom, current.designs + before.designs, before.designs)
    return current


def average_values(values: Sequence[float], scatter: Scatter | None) -> Mean:
    """The mean of at least one value with the pooled error, or with its own where these values scatter clearly more."""
    center, count = fmean(values), len(values)
    squares, freedom = _sum_squares(values), count - 1
    if scatter is None:
        if not squares:
            return Mean(center, count)
        scatter = Scatter(squares / freedom, freedom, 1)
    if freedom and _is_larger(
        _divide_variances(squares / freedom, scatter.variance), freedom, scatter.freedom
    ):
        return Mean(center, count, math.sqrt(squares / freedom / count), freedom, is_own=True)
    return Mean(center, count, math.sqrt(scatter.variance / count), scatter.freedom)


def is_apart(low: Mean, high: Mean) -> bool:
    """Whether `high` lies above `low` beyond what the scatter explains (95 %)."""
    if low.error is None or high.error is None:
        return False
    error = math.hypot(low.error, high.error)
    return high.value - low.value > compute_student_t(min(low.freedom, high.freedom)) * error


def compute_student_t(freedom: int) -> float:
    """The two-sided 95 % quantile of Student's t."""
    if freedom <= len(_STUDENT_T):
        return _STUDENT_T[max(freedom, 1) - 1]
    z, n = _NORMAL, freedom
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    )


def find_averaged(kd: float, replicates: Iterable[ResultRow]) -> tuple[ResultRow, ...]:
    """The replicates whose arithmetic or geometric mean is `kd` (M): of one class, else all; or none."""
    measured = list_measured(replicates)
    classes = [tuple(row for row in measured if row.binding_strength == word) for word in _CLASSES]
    for rows in (*classes, measured):
        values = [row.kd_M for row in rows if row.kd_M]
        if values and any(
            math.isclose(mean, kd, rel_tol=_SAME_MEAN)
            for mean in (fmean(values), 10 ** fmean(map(math.log10, values)))
        ):
            return rows
    return ()


def list_measured(replicates: Iterable[ResultRow]) -> tuple[ResultRow, ...]:
    """The replicates with a K_D, limits included."""
    return tuple(
        row
        for row in replicates
        if row.outcome is Outcome.MEASURED
        and row.kd_M is not None
        and math.isfinite(row.kd_M)
        and row.kd_M > 0
    )


def join_values(
    values: Iterable[tuple[float | None, str | None]], *, by_factors: bool, noun: str = "replicates"
) -> tuple[float | None, str | None, tuple[str, ...]]:
    """The mean of the exact values, or the limit that all limits agree with where more are limits; its sign, and a doubt.

    As many limits as exact values have no value, and neither have limits on both sides.

    Args:
        values: each with `<` or `>` if it is a limit.
        by_factors: the mean is the geometric one.
        noun: what has these values, for the doubt.
    """
    by_sign: defaultdict[str | None, list[float]] = defaultdict(list)
    for value, sign in values:
        if value is not None and (value > 0 or not by_factors):
            by_sign[sign].append(value)
    exact = by_sign.pop(None, [])
    limits = sum(map(len, by_sign.values()))
    doubts = (f"{limits} of {len(exact) + limits} {noun} are limits, and no part of a mean",) if exact else ()
    if len(exact) > limits:
        mean = exact[0] if len(exact) == 1 else (geometric_mean if by_factors else fmean)(exact)
        return mean, None, doubts if limits else ()
    if len(exact) == limits or len(by_sign) != 1:
        return None, None, doubts or ((f"the {noun} are limits on both sides",) if limits else ())
    ((sign, bounds),) = by_sign.items()
    return (min if sign == ">" else max)(bounds), sign, doubts


def find_fitted_interval(kd: float, curves: Sequence[ReplicateKinetics]) -> Interval:
    """The uncertainty of the only replicate's fit, if it holds `kd` (M): else it would be that of another value."""
    fit = curves[0].fit if len(curves) == 1 else None
    uncertainty = fit.kd_uncertainty_M if fit is not None else None
    return (
        (uncertainty.low, uncertainty.high)
        if uncertainty is not None and _holds(uncertainty, kd)
        else (None, None)
    )


def find_fitted_limit(curves: Sequence[ReplicateKinetics]) -> tuple[str, float] | None:
    """The sign and the K_D (M) that the curves of most replicates only bound: the widest bound; None where they give a value."""
    fits = [part.fit.kd_uncertainty_M for part in curves if part.fit is not None]
    highs = [
        uncertainty.high for uncertainty in fits if uncertainty.low is None and uncertainty.high is not None
    ]
    lows = [
        uncertainty.low for uncertainty in fits if uncertainty.high is None and uncertainty.low is not None
    ]
    if 2 * len(highs) > len(fits):
        return "<", max(highs)
    return (">", min(lows)) if 2 * len(lows) > len(fits) else None


def _pool_alike(designs: Iterable[Sequence[float]]) -> Scatter | None:
    """The pooled variance of the designs that scatter like the others."""
    parts = [(_sum_squares(values), len(values) - 1) for values in designs if len(values) >= _FEWEST]
    total, freedom = math.fsum(squares for squares, _ in parts), sum(count for _, count in parts)
    kept = [
        (squares, count)
        for squares, count in parts
        if freedom == count
        or not _is_larger(
            _divide_variances(squares / count, max(0.0, total - squares) / (freedom - count)),
            count,
            freedom - count,
        )
    ]
    freedom = sum(count for _, count in kept)
    variance = math.fsum(squares for squares, _ in kept) / freedom if freedom else 0.0
    return (
        Scatter(variance, freedom, len(kept)) if variance else None
    )  # equal numbers were never measured twice


def _sum_squares(values: Sequence[float]) -> float:
    center = fmean(values)
    return math.fsum((value - center) ** 2 for value in values)


def _divide_variances(variance: float, other: float) -> float:
    if not variance:
        return 0.0
    return variance / other if other > 0 else math.inf


def _is_larger(ratio: float, above: int, below: int) -> bool:
    """Whether a ratio of two variances is clearly above one: Paulson's normal form of the F distribution."""
    if math.isinf(ratio):
        return True
    root, a, b = math.cbrt(ratio), 2 / (9 * above), 2 / (9 * below)
    return root * (1 - b) - (1 - a) > _SURE * math.sqrt(a + root**2 * b)


def _holds(estimate: Estimate, kd: float) -> bool:
    if estimate.low is None and estimate.high is None:
        return False
    return (estimate.low or 0.0) <= kd <= (math.inf if estimate.high is None else estimate.high)
