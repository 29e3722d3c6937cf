"""The physics of the model, and the statistics of summaries: pure functions, without chance and I/O.

Units: seconds, M, 1/(M s), 1/s, kelvin inside and degrees Celsius outside, J/mol.
"""

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any, Final

ASSOCIATION_S: Final = 180.0
RUN_S: Final = 479.0
STEP_S: Final = 0.2
NM: Final = 1e-9

GAS_CONSTANT: Final = 8.314462618
ZERO_CELSIUS_K: Final = 273.15
_Z95 = 1.959963984540054


def timeline(step: float) -> list[float]:
    """Sampling times of one sensorgram, from 0 to `RUN_S`."""
    return [round(index * step, 3) for index in range(int(RUN_S / step + 1e-9) + 1)]


def binding_signal(
    times: Sequence[float], *, concentration_m: float, kon: float, koff: float, rmax: float
) -> list[float]:
    """1:1 binding: association up to `ASSOCIATION_S`, dissociation into buffer after it.

    dR/dt = kon c (Rmax - R) - koff R, with c = 0 in the dissociation phase.

    Returns:
        The response at each time, in the unit of `rmax`.
    """
    kobs = kon * concentration_m + koff
    plateau = rmax * kon * concentration_m / kobs
    peak = plateau * (1.0 - math.exp(-kobs * ASSOCIATION_S))
    exp = math.exp
    return [
        plateau * (1.0 - exp(-kobs * t)) if t <= ASSOCIATION_S else peak * exp(-koff * (t - ASSOCIATION_S))
        for t in times
    ]


def equilibrium_response(*, concentration_m: float, kd: float, rmax: float) -> float:
    """The plateau of the association phase: Rmax c / (c + K_D)."""
    return rmax * concentration_m / (concentration_m + kd)


def unfolded_fraction(celsius: float, *, tm: float, enthalpy: float, heat_capacity: float) -> float:
    """Two-state unfolding with the Gibbs-Helmholtz equation.

    dG(T) = dHm (1 - T/Tm) + dCp (T - Tm - T ln(T/Tm)); K = exp(-dG/RT); fraction = K / (1 + K). `tm` is in degrees
    Celsius, `enthalpy` (dHm) in J/mol, `heat_capacity` (dCp) in J/(mol K).
    """
    kelvin = celsius + ZERO_CELSIUS_K
    melting = tm + ZERO_CELSIUS_K
    gibbs = enthalpy * (1.0 - kelvin / melting) + heat_capacity * (
        kelvin - melting - kelvin * math.log(kelvin / melting)
    )
    exponent = max(-700.0, min(700.0, gibbs / (GAS_CONSTANT * kelvin)))
    return 1.0 / (1.0 + math.exp(exponent))


def michaelis_menten(substrate_m: float, *, vmax: float, km: float) -> float:
    """Initial rate at one substrate concentration, in the unit of `vmax`."""
    return vmax * substrate_m / (km + substrate_m)


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
