"""The 1:1 response in closed form, as means over bins of samples, so that binning does not bias fast kinetics.

Knows no fit. Rates in 1/s, times in s from the start of a phase, concentrations in M.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from prefect_assay.analysis.kinetics.curves import FloatArray

_GROWTH: Final = 0.4
_PARTS: Final = 10


@dataclass(frozen=True, slots=True)
class Bins:
    """Neighbouring samples of one phase: first time, number and spacing of the samples in each bin, shape (n,)."""

    first_s: FloatArray
    count: FloatArray
    step_s: float

    @property
    def centre_s(self) -> FloatArray:
        """Mean time of each bin."""
        return self.first_s + 0.5 * (self.count - 1) * self.step_s

    def decay(self, rate: FloatArray) -> FloatArray:
        """Mean of exp(-rate t) over the samples of each bin: the sum of a geometric series.

        Args:
            rate: any shape (...,), positive.

        Returns:
            Shape (..., n).
        """
        rate = np.asarray(rate)[..., None]
        single = -np.expm1(-rate * self.step_s)
        series = -np.expm1(-rate * self.step_s * self.count)
        return np.asarray(np.exp(-rate * self.first_s) * series / (self.count * single))


def bin_counts(samples: int) -> list[int]:
    """How many samples each bin takes: single ones where a phase starts, a tenth of the phase where the curve is slow."""
    counts, used = [], 0
    while used < samples:
        width = min(int(_GROWTH * used + 0.5), samples // _PARTS)
        counts.append(min(max(1, width), samples - used))
        used += counts[-1]
    return counts


def unit_response(
    kon: FloatArray,
    koff: FloatArray,
    concentration: FloatArray,
    phases: tuple[Bins, Bins],
    association_s: float,
) -> FloatArray:
    """Association, then dissociation, for Rmax = 1.

    Args:
        kon: shape (...,).
        koff: shape (...,).
        concentration: shape (c,).
        phases: the bins of both phases, each from its own start.
        association_s: length of the association.

    Returns:
        Shape (..., c, n) with the bins of both phases one after the other.
    """
    kon, koff = np.asarray(kon)[..., None], np.asarray(koff)[..., None]
    kobs = kon * concentration + koff
    plateau = kon * concentration / kobs
    association = plateau[..., None] * (1.0 - phases[0].decay(kobs))
    peak = plateau * -np.expm1(-kobs * association_s)
    dissociation = peak[..., None] * phases[1].decay(koff)
    return np.concatenate([association, dissociation], axis=-1)


def curve(
    time_s: FloatArray, kon: float, koff: float, concentration: float, association_s: float
) -> FloatArray:
    """The 1:1 response for Rmax = 1 at single times from the start of the association, shape (n,)."""
    kobs = kon * concentration + koff
    plateau = kon * concentration / kobs
    rising = plateau * -np.expm1(-kobs * np.minimum(time_s, association_s))
    return np.asarray(rising * np.exp(-koff * np.maximum(time_s - association_s, 0.0)))
