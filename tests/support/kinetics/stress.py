"""Stress sets: 1:1 curves with each disturbance of a real instrument, and other mechanisms, with known constants.

Independent of the product. Every set has a common error of its concentrations, as every experiment has; the nominal ones
are fitted. `kd_nominal` is the K_D that the nominal concentrations give, which the precision of a fit has to hold;
`kd` is the true one, which its uncertainty has to hold. The service's values are those of a faultless fit.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.signal import lfilter

from prefect_assay.analysis.kinetics.curves import Curve
from support.kinetics.simulate import CONCENTRATIONS_M, Schedule, solved

CONCENTRATION_ERROR = 0.2
SCHEDULE = Schedule(step_s=1.0)


@dataclass(frozen=True)
class Disturbance:
    """What an instrument adds, in the unit of its signal unless it says otherwise; each curve has its own."""

    unit: str = "nm"
    noise: float = 0.004
    correlation: float = 0.0  # of the noise from one second to the next
    offset: float = 0.0
    bulk: float = 0.0  # during the association, in proportion to the concentration
    curved: float = 0.0  # drift that settles
    wander: float = 0.0  # a slow random walk without trend
    own_drift: float = 0.015
    concentration: float = 0.0  # share, uniform, each curve
    rmax: float = 0.0  # share, normal, each sensor
    dispersion_s: float = 0.0  # how an injection mixes at both edges
    slower: float = 0.0  # share of sites that dissociate five times slower
    reference: float = 0.0  # share of the signal that the reference takes with it
    blank: str = "as it should be"  # or "missing", or "swapped" with the lowest concentration


ORDINARY = {
    "white noise": Disturbance(),
    "correlated noise": Disturbance(correlation=0.6),
    "offset of 20 pm per curve": Disturbance(offset=0.02),
    "bulk shift of 50 pm": Disturbance(bulk=0.05),
    "curved drift of 20 pm": Disturbance(curved=0.02),
    "wander of 4 pm": Disturbance(wander=0.004),
    "concentrations ± 20 % at random": Disturbance(concentration=0.2),
    "Rmax ± 10 % per sensor": Disturbance(rmax=0.1),
    "all of them, half as strong": Disturbance(
        correlation=0.3, offset=0.01, bulk=0.025, curved=0.01, wander=0.002, concentration=0.1, rmax=0.05
    ),
    "all of them": Disturbance(
        correlation=0.6, offset=0.02, bulk=0.05, curved=0.02, wander=0.004, concentration=0.2, rmax=0.1
    ),
}
INSTRUMENT = {
    "1 s of injection mixing": Disturbance(dispersion_s=1.0),
    "10 % of the sites five times slower": Disturbance(slower=0.1),
    "the reference takes 5 % of the signal": Disturbance(reference=0.05),
    "no blank": Disturbance(blank="missing"),
    "the blank swapped with the lowest concentration": Disturbance(blank="swapped"),
}
SURFACE = Disturbance(
    unit="RU", noise=0.3, offset=0.3, wander=0.1, own_drift=0.5, bulk=1.0, concentration=0.05, rmax=0.02
)
SPR = {
    "SPR, bulk of 20 RU": replace(SURFACE, bulk=20.0),
    "SPR, 1 s of injection mixing": replace(SURFACE, dispersion_s=1.0),
    "SPR, curved baseline of 2 RU": replace(SURFACE, curved=2.0),
    "SPR, the reference takes 5 % of the signal": replace(SURFACE, reference=0.05),
    "SPR, all of these": replace(SURFACE, bulk=20.0, dispersion_s=1.0, curved=2.0, reference=0.05),
    "SPR, 10 % of the sites five times slower": replace(SURFACE, slower=0.1),
    "SPR, no blank": replace(SURFACE, blank="missing"),
    "SPR, the blank swapped with the lowest concentration": replace(SURFACE, blank="swapped"),
}
MILD = ORDINARY["all of them, half as strong"]
_RU = 40.0
"""So many RU are taken for one nm."""


@dataclass(frozen=True)
class StressSet:
    """Curves with a blank, at nominal concentrations, and what is true about them."""

    curves: tuple[Curve, ...]
    kon: float
    koff: float
    kd: float
    kd_nominal: float
    association_s: float
    unit: str = "nm"


def one_site(kon, koff, rmax, c, times, association_s):
    kobs = kon * c + koff
    rising = rmax * kon * c / kobs * -np.expm1(-kobs * np.minimum(times, association_s))
    return rising * np.exp(-koff * np.maximum(times - association_s, 0))


def disturbed(clean, rng, disturbance, schedule=SCHEDULE):
    """The curves of an instrument, with a blank: `clean` gives the signal of a concentration for Rmax = 1 share."""
    times, d = schedule.times, disturbance
    x = times / times[-1]
    shared = -(0.15 if d.unit == "nm" else 3.0) * rng.random() * x
    curves = []
    for nominal in (0.0, *CONCENTRATIONS_M):
        signal = shared + d.own_drift * rng.standard_normal() * x
        if nominal:
            true = nominal * (1 + d.concentration * rng.uniform(-1, 1))
            signal = signal + clean(true) * (1 + d.rmax * rng.standard_normal())
            jump = d.bulk * rng.standard_normal() * nominal / max(CONCENTRATIONS_M)
            signal = signal + jump * (times <= schedule.association_s)
        signal = signal + d.offset * rng.standard_normal()
        signal = signal + d.curved * rng.standard_normal() * -np.expm1(-times / rng.uniform(60, 200))
        signal = signal + d.wander * _ou(rng, len(times), np.exp(-schedule.step_s / 60.0))
        signal = signal + d.noise * _ou(rng, len(times), d.correlation)
        curves.append(Curve(nominal, times, signal))
    if d.blank == "missing":
        curves = curves[1:]
    if d.blank == "swapped":
        one, two, *rest = curves
        curves = [Curve(0.0, times, two.signal), Curve(two.concentration_M, times, one.signal), *rest]
    return tuple(curves)


def mixed(signal, schedule, seconds):
    """A signal after an injection that mixes over so many seconds."""
    keep = np.exp(-schedule.step_s / seconds)
    return lfilter([1 - keep], [1.0, -keep], signal)


def _ou(rng, count, correlation):
    white = rng.standard_normal(count)
    if correlation:
        white[1:] *= np.sqrt(1 - correlation**2)
        white = lfilter([1.0], [1.0, -correlation], white)
    return white


def constants(rng, nanomolar=(1.0, 300.0)):
    """k_on, k_off and Rmax of a binder whose response is at least 0.3 nm."""
    while True:
        kd = 1e-9 * np.exp(rng.uniform(*np.log(nanomolar)))
        kon, rmax = 10 ** rng.uniform(4.7, 6.0), rng.choice([6.0, 3.0, 1.2])
        if rmax * 1e-6 / (1e-6 + kd) >= 0.3:
            return kon, kd * kon, rmax


def one_to_one_set(rng, disturbance, nanomolar=(1.0, 300.0), schedule=SCHEDULE):
    kon, koff, rmax = constants(rng, nanomolar)
    scale = np.exp(np.log1p(CONCENTRATION_ERROR) * rng.standard_normal())
    d = disturbance
    rmax *= 1.0 if d.unit == "nm" else _RU

    def clean(c):
        rates = schedule.times, schedule.association_s
        signal = (1 - d.slower) * one_site(kon, koff, rmax, c * scale, *rates)
        signal = signal + d.slower * one_site(kon, koff / 5, rmax, c * scale, *rates)
        signal = (1 - d.reference * c / max(CONCENTRATIONS_M)) * signal
        return mixed(signal, schedule, d.dispersion_s) if d.dispersion_s else signal

    curves = disturbed(clean, rng, disturbance, schedule)
    kd = koff / kon
    return StressSet(curves, kon * scale, koff, kd, kd / scale, schedule.association_s, d.unit)


def _two_sites(rng):
    kon, koff, rmax = constants(rng)
    share, fold = rng.uniform(0.2, 0.5), 10 ** rng.uniform(0.5, 1.7)
    top = rmax * np.array([1 - share, share])
    off = koff * np.array([1, fold])
    return kon, koff, koff / kon, lambda c, r: kon * c * (top - r) - off * r, 2


def _irreversible(rng):
    kon, koff, rmax = constants(rng)
    top, off = rmax * np.array([0.8, 0.2]), koff * np.array([1, 0])
    return kon, koff, koff / kon, lambda c, r: kon * c * (top - r) - off * r, 2


def _bivalent(rng):
    """The second arm of a bound analyte binds a free site; rates of a site are those of the analyte in solution."""
    kon, koff, rmax = constants(rng)
    second = 10 ** rng.uniform(-2.5, -1.5)

    def rates(c, s):
        one, two = s
        free = rmax - one - 2 * two
        turned = second * one * free / rmax - 2 * koff * two
        return np.array([2 * kon * c * free - koff * one - turned, turned])

    return kon, koff, koff / kon, rates, 2


def _transport(rng):
    kon, koff, rmax = constants(rng)
    limit = 10 ** rng.uniform(0.0, 1.5)

    def rates(c, r):
        return (kon * c * (rmax - r) - koff * r) / (1 + limit * (rmax - r) / rmax)

    return kon, koff, koff / kon, rates, 1


def _induced_fit(rng):
    kon, koff, rmax = constants(rng)
    forward, back = 10 ** rng.uniform(-2.5, -1.3), 10 ** rng.uniform(-3.0, -1.7)

    def rates(c, s):
        bound, changed = s
        turned = forward * bound - back * changed
        return np.array([kon * c * (rmax - bound - changed) - 3 * koff * bound - turned, turned])

    kd = 3 * koff / kon / (1 + forward / back)
    return kon, kd * kon, kd, rates, 2


MECHANISMS = {
    "two sites": _two_sites,
    "20 % do not dissociate": _irreversible,
    "bivalent analyte": _bivalent,
    "transport-limited": _transport,
    "induced fit": _induced_fit,
}


def mechanism_set(rng, name, disturbance=MILD, schedule=SCHEDULE):
    kon, koff, kd, rates, states = MECHANISMS[name](rng)
    scale = np.exp(np.log1p(CONCENTRATION_ERROR) * rng.standard_normal())

    def clean(c):
        (curve,) = solved(rates, states, schedule, [c * scale]).values()
        return curve

    curves = disturbed(clean, rng, disturbance, schedule)
    return StressSet(curves, kon * scale, koff, kd, kd / scale, schedule.association_s)
