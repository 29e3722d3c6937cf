"""The model of an unmeasured design (lab/docs/lab-measurements.md): draws, physics, and the statistics of summaries.

Draws are seeded with residues and antigen. Units: s, M, 1/(M s), 1/s, J/mol, kelvin inside, degrees Celsius outside.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, Final

from assay_lab.measure.bundled import Replicate, measured_binders
from assay_lab.measure.request import AssayRequest, make_random

ASSOCIATION_S: Final = 180.0
RUN_S: Final = 479.0
STEP_S: Final = 0.2
NM: Final = 1e-9

GAS_CONSTANT: Final = 8.314462618
ZERO_CELSIUS_K: Final = 273.15
EXPRESSION_SHARES: Final = (("high", 0.55), ("medium", 0.22), ("low", 0.13), ("none", 0.10))
NON_BINDER_SHARE: Final = 0.45
UNKNOWN_SHARE: Final = 0.06
STRONG_BELOW_M: Final = 50e-9
MEDIUM_BELOW_M: Final = 1e-6
REPLICATE_DECADES: Final = 0.08
LANDSCAPE_EXPRESSION: Final = "high"
"""Of a design whose landscape does not have its expression."""

_LOG_KD = (-7.0, 1.0, -9.7, -5.2)
_LOG_KON = (5.0, 0.45, 3.7, 6.3)
_KOFF_RANGE = (2e-5, 1.0)
_Z95 = 1.959963984540054


def make_timeline(step: float) -> list[float]:
    """Sampling times of one sensorgram, from 0 to `RUN_S`."""
    return [round(index * step, 3) for index in range(int(RUN_S / step + 1e-9) + 1)]


def binding_signal(
    times: Sequence[float], *, concentration_m: float, kon: float, koff: float, rmax: float
) -> list[float]:
    """1:1 binding at each time, in the unit of `rmax`: association, then dissociation into buffer."""
    kobs = kon * concentration_m + koff
    plateau = rmax * kon * concentration_m / kobs
    peak = plateau * (1.0 - math.exp(-kobs * ASSOCIATION_S))
    exp = math.exp
    return [
        plateau * (1.0 - exp(-kobs * t)) if t <= ASSOCIATION_S else peak * exp(-koff * (t - ASSOCIATION_S))
        for t in times
    ]


def unfolded_fraction(celsius: float, *, tm: float, enthalpy: float, heat_capacity: float) -> float:
    """Two-state unfolding (Gibbs-Helmholtz): `tm` in degrees Celsius, dHm in J/mol, dCp in J/(mol K)."""
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


def compute_mean(values: Sequence[float]) -> float | None:
    """Arithmetic mean; nothing measured is null, not zero."""
    return fmean(values) if values else None


def compute_spread(values: Sequence[float]) -> float | None:
    """Sample standard deviation; null below two values."""
    return stdev(values) if len(values) > 1 else None


def log_spread(values: Sequence[float]) -> float | None:
    """Sample standard deviation of log10 of the values, in decades; null below two values."""
    return compute_spread([math.log10(value) for value in values])


def compute_interval(values: Sequence[float]) -> dict[str, Any] | None:
    """Geometric mean with a 95 % interval from the scatter of the logarithms."""
    if not values:
        return None
    centre = fmean(math.log10(value) for value in values)
    decades = log_spread(values)
    if decades is None:
        return {"value": 10**centre, "ci_low": None, "ci_high": None}
    half = _Z95 * decades / math.sqrt(len(values))
    return {"value": 10**centre, "ci_low": 10 ** (centre - half), "ci_high": 10 ** (centre + half)}


@dataclass(frozen=True, slots=True)
class Nature:
    """What all replicates of a design have in common."""

    expression: str
    binding: str
    kon: float | None = None
    koff: float | None = None


def classify_strength(kd: float) -> str:
    """The class of a fitted K_D in M."""
    if kd <= STRONG_BELOW_M:
        return "strong"
    return "medium" if kd <= MEDIUM_BELOW_M else "weak"


def expression_of(request: AssayRequest, residues: str) -> str:
    """The landscape's expression, else the drawn one."""
    facts = request.facts(residues)
    return draw_expression(residues) if facts is None else facts.get("expression", LANDSCAPE_EXPRESSION)


def draw_expression(residues: str) -> str:
    """Expression depends on the sequence alone, not on the target."""
    if rows := measured_binders().get(residues):
        return typical_expression([row.expression for row in rows])
    roll = make_random("expression", residues).random()
    for name, share in EXPRESSION_SHARES:
        roll -= share
        if roll < 0:
            return name
    return EXPRESSION_SHARES[-1][0]


def draw_nature(residues: str, antigen: str) -> Nature:
    """Expression, whether it binds at all, and its true constants."""
    expression = draw_expression(residues)
    if expression == "none":
        return Nature(expression, "unknown")
    chance = make_random("binding", residues, antigen)
    roll = chance.random()
    if roll < UNKNOWN_SHARE:
        return Nature(expression, "unknown")
    if roll < UNKNOWN_SHARE + NON_BINDER_SHARE:
        return Nature(expression, "false")
    kd = 10 ** _clipped_normal(chance.gauss(0, 1), _LOG_KD)
    kon = 10 ** _clipped_normal(chance.gauss(0, 1), _LOG_KON)
    return Nature(expression, "true", kon, min(max(kd * kon, _KOFF_RANGE[0]), _KOFF_RANGE[1]))


def nature_of(request: AssayRequest, residues: str) -> Nature:
    """The landscape's nature of a design, else the drawn one."""
    facts = request.facts(residues)
    if facts is None:
        return draw_nature(residues, request.target_key)
    expression = expression_of(request, residues)
    if expression == "none":
        return Nature(expression, "unknown")
    kd = facts.get("kd_M")
    if kd is None:
        return Nature(expression, facts["binding"])
    drawn = make_random("landscape", residues, request.target_key).gauss(0, 1)
    kon = facts.get("kon_per_M_s") or 10 ** _clipped_normal(drawn, _LOG_KON)
    return Nature(expression, "true", kon, kd * kon)


def _clipped_normal(standard: float, shape: tuple[float, float, float, float]) -> float:
    mean, deviation, low, high = shape
    return min(max(mean + deviation * standard, low), high)


def measured_of(request: AssayRequest, residues: str) -> tuple[Replicate, ...]:
    """The bundled replicates of these residues against this antigen, or nothing; a landscape replaces them."""
    bundled = request.against_egfr and request.facts(residues) is None
    return measured_binders().get(residues, ()) if bundled else ()


def make_replicates(request: AssayRequest, residues: str) -> tuple[Replicate, ...]:
    """All replicates of one design: measured ones first, the model for the rest."""
    rows = measured_of(request, residues)
    real = rows if request.method == "bli" else ()
    nature = _average_measured(rows) if rows else nature_of(request, residues)
    return tuple(
        real[number - 1] if number <= len(real) else _model_replicate(request, residues, nature, number)
        for number in range(1, request.n_replicates + 1)
    )


def _average_measured(rows: tuple[Replicate, ...]) -> Nature:
    """The geometric mean of what was measured, so that an added replicate lies among the measured ones."""
    expression = typical_expression([row.expression for row in rows])
    fitted = [(row.kon, row.koff) for row in rows if row.kon is not None and row.koff is not None]
    if not fitted:
        return Nature(expression, "false")
    kon = math.exp(math.fsum(math.log(pair[0]) for pair in fitted) / len(fitted))
    koff = math.exp(math.fsum(math.log(pair[1]) for pair in fitted) / len(fitted))
    return Nature(expression, "true", kon, koff)


def typical_expression(classes: Sequence[str]) -> str:
    """The median class; of two in the middle the lower."""
    order = [name for name, _ in reversed(EXPRESSION_SHARES)]
    return sorted(classes, key=order.index)[(len(classes) - 1) // 2]


def _model_replicate(request: AssayRequest, residues: str, nature: Nature, number: int) -> Replicate:
    source = request.source(residues)
    if nature.kon is None or nature.koff is None:
        binding_strength = "none" if nature.binding == "false" else "unknown"
        return Replicate(
            number, nature.expression, nature.binding, binding_strength, None, None, None, source
        )
    decades, *seed = _draw_scatter(request, residues)
    chance = make_random("replicate", *seed, residues, request.target_key, request.method, number)
    kon = nature.kon * 10 ** chance.gauss(0, decades)
    koff = nature.koff * 10 ** chance.gauss(0, decades)
    kd = koff / kon
    return Replicate(number, nature.expression, "true", classify_strength(kd), kd, kon, koff, source)


def _draw_scatter(request: AssayRequest, residues: str) -> tuple[Any, ...]:
    """How far k_on and k_off of replicates lie apart, in decades, and a landscape's seed."""
    if request.landscape is None or request.facts(residues) is None:
        return (REPLICATE_DECADES,)
    # Equal parts on both constants, so that K_D scatters by the stated noise.
    return request.landscape["kd_noise"] / math.sqrt(2), request.landscape["seed"]
