"""Melting curves with known constants: two states by Gibbs and Helmholtz, from the lab's model, and what disturbs them."""

from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter

from assay_lab.measure.model import unfolded_fraction

CELSIUS = np.arange(20.0, 95.01, 0.5)
NOISE = 0.0015


def unfolded(tm, residues, capacity=1.0):
    enthalpy, capacity = residues * (2_920 + 58 * (tm - 60)), 58.0 * residues * capacity
    return np.array([unfolded_fraction(t, tm=tm, enthalpy=enthalpy, heat_capacity=capacity) for t in CELSIUS])


def ratio(tm, *, residues=120, noise=0.0, seed=0, second=None, capacity=1.0):
    """F350/F330 as sensors give it; `second` adds half of another transition."""
    share = unfolded(tm, residues, capacity)
    if second is not None:
        share = 0.5 * (share + unfolded(second, residues))
    folded, opened = 0.72 + 0.0006 * CELSIUS, 1.02 + 0.0009 * CELSIUS
    random = np.random.default_rng(seed).standard_normal(len(CELSIUS))
    return (1 - share) * folded + share * opened + noise * random


@dataclass(frozen=True)
class Trouble:
    """What a melting curve has beside white noise."""

    capacity: tuple[float, float] = (1.0, 1.0)  # the heat capacity over the expected one, uniform
    bend: float = 0.0  # of both baselines as a share of the signal's range, normal
    correlation: float = 0.0  # of the noise from one point to the next


TROUBLES = {
    "white noise": Trouble(),
    "ΔC_p 0.6 times the expected one": Trouble(capacity=(0.6, 0.6)),
    "ΔC_p 1.4 times": Trouble(capacity=(1.4, 1.4)),
    "ΔC_p 0.6 to 1.4 times": Trouble(capacity=(0.6, 1.4)),
    "baselines bent by 3 %": Trouble(bend=0.03),
    "correlated noise": Trouble(correlation=0.6),
    "all of them": Trouble(capacity=(0.6, 1.4), bend=0.03, correlation=0.6),
}


def melt_set(rng, trouble):
    """A curve and its melting temperature."""
    tm, capacity = rng.uniform(45, 80), rng.uniform(*trouble.capacity)
    clean = ratio(tm, residues=rng.uniform(60, 160), capacity=capacity)
    white = NOISE * rng.standard_normal(len(clean))
    white[1:] *= np.sqrt(1 - trouble.correlation**2)
    x = (CELSIUS - CELSIUS.mean()) / np.ptp(CELSIUS)
    bend = trouble.bend * np.ptp(clean) * rng.standard_normal() * (4 * x**2 - 1 / 3)
    return clean + bend + lfilter([1.0], [1.0, -trouble.correlation], white), tm
