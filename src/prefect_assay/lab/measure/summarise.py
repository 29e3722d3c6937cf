"""From replicates to a summary: means, scatter and confidence intervals of fitted constants."""

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any

_Z95 = 1.959963984540054


def mean(values: Sequence[float]) -> float | None:
    """Arithmetic mean; nothing measured is null, not zero."""
    return fmean(values) if values else None


def spread(values: Sequence[float]) -> float | None:
    """Sample standard deviation; null below two values."""
    return stdev(values) if len(values) > 1 else None


def log_spread(values: Sequence[float]) -> float | None:
    """Sample standard deviation of log10 of the values, in decades; null below two values."""
    return spread([math.log10(value) for value in values])


def interval(values: Sequence[float]) -> dict[str, Any] | None:
    """Geometric mean with a 95 % interval from the scatter of the logarithms."""
    if not values:
        return None
    centre = fmean(math.log10(value) for value in values)
    decades = log_spread(values)
    if decades is None:
        return {"value": 10**centre, "ci_low": None, "ci_high": None}
    half = _Z95 * decades / math.sqrt(len(values))
    return {"value": 10**centre, "ci_low": 10 ** (centre - half), "ci_high": 10 ** (centre + half)}
