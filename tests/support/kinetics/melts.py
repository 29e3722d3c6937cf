"""Melting curves with known midpoints: two states, irreversible unfolding, two domains, and what disturbs them.

Two states are the lab's model; the others are integrated here. Temperatures in °C, scan rates in °C/min, energies in J/mol.
"""

import numpy as np
from scipy.integrate import cumulative_trapezoid
from scipy.optimize import brentq
from scipy.signal import lfilter

from assay_lab.measure.model import unfolded_fraction

CELSIUS = np.arange(20.0, 95.01, 0.5)
NOISE = 0.0015
GAS, ZERO_C = 8.314462618, 273.15


def unfolded(tm, residues, capacity=1.0, celsius=CELSIUS):
    enthalpy, capacity = residues * (2_920 + 58 * (tm - 60)), 58.0 * residues * capacity
    return np.array([unfolded_fraction(t, tm=tm, enthalpy=enthalpy, heat_capacity=capacity) for t in celsius])


def unfolded_for_good(midpoint, activation, scan_rate, residues=None, celsius=CELSIUS):
    """The share that is not native in N → F, or with `residues` in N ⇌ U → F; half of it at `midpoint`.

    The equilibrium of N ⇌ U → F has its own midpoint 2 °C above, so the last step pulls the transition down.
    """
    fine = np.arange(celsius[0], celsius[-1] + 0.05, 0.1)
    equilibrium = unfolded(midpoint + 2, residues, celsius=fine) if residues else np.zeros(len(fine))

    def share(shift):
        rate = np.exp(activation / GAS * (1 / (midpoint + shift + ZERO_C) - 1 / (fine + ZERO_C)))
        lost = cumulative_trapezoid(rate * (equilibrium if residues else 1.0) / scan_rate, fine, initial=0)
        return 1 - np.exp(-lost) * (1 - equilibrium)

    shift = brentq(lambda shift: np.interp(midpoint, fine, share(shift)) - 0.5, -40.0, 60.0)
    return np.interp(celsius, fine, share(shift))


def ratio(tm, *, residues=120, noise=0.0, seed=0, second=None, capacity=1.0):
    """F350/F330 as sensors give it; `second` adds half of another transition."""
    share = unfolded(tm, residues, capacity)
    if second is not None:
        share = 0.5 * (share + unfolded(second, residues))
    random = np.random.default_rng(seed).standard_normal(len(CELSIUS))
    return between_baselines(share, CELSIUS, (0.0006, 0.0009)) + noise * random


def between_baselines(share, celsius, slopes):
    folded, opened = 0.72 + slopes[0] * celsius, 1.02 + slopes[1] * celsius
    return (1 - share) * folded + share * opened


def two_states(rng, celsius=CELSIUS):
    tm = rng.uniform(45, 80)
    return unfolded(tm, rng.uniform(60, 160), rng.uniform(0.6, 1.4), celsius), (tm,)


def irreversible(rng, celsius=CELSIUS, residues=None):
    tm, activation, scan_rate = rng.uniform(45, 78), rng.uniform(1.5e5, 6e5), rng.choice([0.3, 1.0, 3.0])
    return unfolded_for_good(tm, activation, scan_rate, residues, celsius), (tm,)


def two_domains(rng, apart, celsius=CELSIUS):
    first, part = rng.uniform(45, 70), rng.uniform(0.3, 0.7)
    tms = (first, first + rng.uniform(*apart))
    shares = [unfolded(tm, rng.uniform(60, 160), rng.uniform(0.6, 1.4), celsius) for tm in tms]
    return part * shares[0] + (1 - part) * shares[1], tms


KINDS = {
    "two states": two_states,
    "two states, white noise only": two_states,
    "two states, steep baselines": two_states,
    "two states, a baseline cut to 5 to 12 °C": two_states,
    "irreversible": irreversible,
    "irreversible after an equilibrium": lambda rng, celsius=CELSIUS: irreversible(
        rng, celsius, rng.uniform(60, 160)
    ),
    "two domains 4 to 6 °C apart": lambda rng, celsius=CELSIUS: two_domains(rng, (4, 6), celsius),
    "two domains 6 to 10 °C apart": lambda rng, celsius=CELSIUS: two_domains(rng, (6, 10), celsius),
    "two domains 10 to 15 °C apart": lambda rng, celsius=CELSIUS: two_domains(rng, (10, 15), celsius),
}


def melt_set(rng, kind):
    """Temperatures, a curve, the midpoint of all that unfolds, and the melting temperatures of its parts.

    Unless the kind says otherwise, baselines are bent by 3 % of the range and noise is correlated, and both vary.
    """
    share, tms = KINDS[kind](rng)
    midpoint = float(np.interp(0.5, share, CELSIUS))
    is_plain = "white" in kind
    slopes = rng.uniform(-0.004, 0.004, 2) if "steep" in kind else rng.uniform(-0.001, 0.001, 2)
    clean = between_baselines(share, CELSIUS, slopes)
    noise, correlation = NOISE * 10 ** rng.uniform(-0.5, 0.3), 0.0 if is_plain else rng.uniform(0.0, 0.6)
    white = noise * rng.standard_normal(len(clean))
    white[1:] *= np.sqrt(1 - correlation**2)
    x = (CELSIUS - CELSIUS.mean()) / np.ptp(CELSIUS)
    bend = 0.0 if is_plain else 0.03 * 0.3 * rng.standard_normal()
    signal = clean + bend * (4 * x**2 - 1 / 3) + lfilter([1.0], [1.0, -correlation], white)
    kept = np.full(len(CELSIUS), fill_value=True)
    if "cut" in kind:
        end = rng.uniform(5, 12)
        side = rng.choice([-1, 1])
        kept = side * (CELSIUS - midpoint) < end
    return CELSIUS[kept], signal[kept], midpoint, tms
