"""The verdict on one replicate, with its reasons (docs/kinetics.md has the thresholds and how they were measured)."""

from typing import Final

import numpy as np

from prefect_assay.results.kinetics.analysis import KineticsFit, ServiceValues, Verdict
from prefect_assay.results.kinetics.prepare import Matrix

AGREEMENT: Final = 0.25
"""How far a fitted value may lie from the service's, as a share of it."""
RESPONSE: Final = {"nm": 0.3, "RU": 6.0}
"""A curve that stays below has no response, in the unit of the signal."""
MISFIT: Final = 0.02
"""Root mean square residual of the 1:1 fit that is no noise any more, as a share of the highest signal."""


def binds(data: Matrix) -> bool:
    """Whether any curve rises above what sensors without binding show."""
    return float(np.max(data.signal)) > RESPONSE[data.unit]


def judge(fits: tuple[KineticsFit, ...], service: ServiceValues) -> tuple[Verdict, tuple[str, ...]]:
    """Verdict and reasons of a replicate that binds."""
    one, two = fits
    reasons = []
    for name in ("kon_per_M_s", "koff_per_s", "kd_M"):
        estimate, reported = getattr(two, name), getattr(service, name)
        if reported and abs(estimate.value / reported - 1) > AGREEMENT:
            reasons.append(
                f"{name} of two_step is {estimate.value / reported - 1:+.0%} off the service's value"
            )
    if one.relative_mae > MISFIT:
        return Verdict.NOT_1_TO_1, (f"residuals of {one.relative_mae:.1%} of the highest signal", *reasons)
    return (Verdict.REVIEW if reasons else Verdict.AGREES), tuple(reasons)
