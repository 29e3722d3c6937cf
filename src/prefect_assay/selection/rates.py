"""Hit rates of what was bought before, with their intervals: per method, per tenth of the score, per parent. Needs no NumPy.

A hit is what a buyer pays for, so a design that does not express is no hit, like a non-binder. Open and unknown outcomes are
not counted, and neither are controls, which were not designed.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, assert_never

from prefect_assay.models.calls import Call, read_call
from prefect_assay.models.quantities import SIGNS
from prefect_assay.models.selection import Objective, SelectionSettings
from prefect_assay.results import DesignSummary, Outcome

_EXPRESSED: Final = {Call.EXPRESSES: True, Call.NO_EXPRESSION: False}
_NM: Final = 1e-9
_JEFFREYS: Final = 0.5  # both parameters of the prior
_TAIL: Final = 0.025  # on each side of a 95 % interval


@dataclass(frozen=True, slots=True)
class HitRate:
    """Hits of designs that were bought and have an outcome."""

    hits: int
    bought: int

    @property
    def rate(self) -> float:
        """The share of hits; NaN when none was bought."""
        return self.hits / self.bought if self.bought else math.nan

    def interval(self) -> tuple[float, float]:
        """The 95 % Jeffreys interval of the rate: equal tails of Beta(hits + 1/2, misses + 1/2), and an end at 0 or 1 where none or all hit."""
        alpha, beta = self.hits + _JEFFREYS, self.bought - self.hits + _JEFFREYS
        low = beta_quantile(_TAIL, alpha, beta) if self.hits else 0.0
        high = beta_quantile(1 - _TAIL, alpha, beta) if self.hits < self.bought else 1.0
        return low, high


def is_hit(design: DesignSummary, settings: SelectionSettings) -> bool | None:
    """Return True for a hit, False for a miss, None where the history does not say.

    A limit counts where it decides: K_D > 100 nM misses 100 nM, and says nothing about 200 nM.
    """
    if design.control:
        return None
    if design.outcome is Outcome.NO_EXPRESSION:
        return False
    low = settings.objective.value_of.lower_is_better
    if settings.objective is Objective.AFFINITY and design.outcome is Outcome.NO_BINDING:
        return False
    value, limit = _value(design, settings.objective), settings.hit_limit
    qualifier = _qualifier(design, settings.objective)
    if limit is None:
        measured = value is not None and qualifier != (">" if low else "<")
        return True if measured else _called(design, settings.objective)
    return None if value is None else _reaches(value, qualifier, limit, low=low)


def _reaches(value: float, qualifier: str | None, limit: float, *, low: bool) -> bool | None:
    """Whether a value reaches the hit limit; `low`: a lower one is better. None if it is a limit that leaves this open."""
    signed, wanted = (-value, -limit) if low else (value, limit)
    if qualifier is None:
        return signed >= wanted
    if (qualifier == "<") is low:  # at least so good
        return True if signed >= wanted else None
    return False if signed <= wanted else None


def _called(design: DesignSummary, objective: Objective) -> bool | None:
    """A hit without a number, in the laboratory's words; None for unknown ones."""
    if objective is Objective.AFFINITY:
        binds = design.outcome is Outcome.BINDING or read_call(design.binding).call is Call.BINDS
        return True if binds else None
    if objective is Objective.EXPRESSION:
        return _EXPRESSED.get(read_call(design.expression, "expression").call)
    return None


def objective_value(design: DesignSummary, objective: Objective) -> float | None:
    """K_D in nM, melting temperature in degrees Celsius or concentration in nM; None if it was not measured.

    A limit is no measurement.
    """
    return None if _qualifier(design, objective) else _value(design, objective)


def limit_of(design: DesignSummary, objective: Objective) -> tuple[float, int] | None:
    """A limit in the unit of the objective, and 1 if the design is at most so good, -1 if at least; None without one."""
    qualifier, value = _qualifier(design, objective), _value(design, objective)
    if qualifier is None or value is None:
        return None
    return value, 1 if (qualifier == ">") is objective.value_of.lower_is_better else -1


def _value(design: DesignSummary, objective: Objective) -> float | None:
    match objective:
        case Objective.AFFINITY:
            found = design.kd_M / _NM if design.kd_M and design.outcome is Outcome.MEASURED else None
        case Objective.MELTING:
            found = design.tm_C
        case Objective.EXPRESSION:
            found = design.concentration_nM
        case _:
            assert_never(objective)
    return found if found is not None and math.isfinite(found) else None


def _qualifier(design: DesignSummary, objective: Objective) -> str | None:
    """`<` or `>` if the value is a limit: the qualifier is that of K_D or, without one, of the concentration."""
    of_kd = design.kd_M is not None
    applies = of_kd if objective is Objective.AFFINITY else objective is Objective.EXPRESSION and not of_kd
    return SIGNS.get(design.qualifier or "=") if applies else None


def hit_rates(
    designs: Iterable[DesignSummary],
    group_of: Callable[[DesignSummary], Hashable],
    settings: SelectionSettings,
) -> Mapping[Hashable, HitRate]:
    """The hit rate of each group; designs whose group is None are left out."""
    hits: defaultdict[Hashable, int] = defaultdict(int)
    bought: defaultdict[Hashable, int] = defaultdict(int)
    for design in designs:
        hit, group = is_hit(design, settings), group_of(design)
        if hit is not None and group is not None:
            hits[group] += hit
            bought[group] += 1
    return {group: HitRate(hits[group], count) for group, count in bought.items()}


def beta_quantile(share: float, alpha: float, beta: float) -> float:
    """The value below which a Beta distribution has this share, to ten digits."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if _beta_share(middle, alpha, beta) < share:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _beta_share(x: float, alpha: float, beta: float) -> float:
    """The regularized incomplete beta function, by its continued fraction (NIST DLMF 8.17.22), 0 < x < 1."""
    if x > (alpha + 1) / (alpha + beta + 2):  # where it converges fast
        return 1 - _beta_share(1 - x, beta, alpha)
    front = math.exp(
        math.lgamma(alpha + beta)
        - math.lgamma(alpha)
        - math.lgamma(beta)
        + alpha * math.log(x)
        + beta * math.log1p(-x)
    )
    fraction, c, d = 1.0, 1.0, 0.0
    for step in range(400):
        m = step // 2
        if step == 0:
            term = 1.0
        elif step % 2 == 0:
            term = m * (beta - m) * x / ((alpha + 2 * m - 1) * (alpha + 2 * m))
        else:
            term = -(alpha + m) * (alpha + beta + m) * x / ((alpha + 2 * m) * (alpha + 2 * m + 1))
        d = 1 / (1 + term * d)
        c = 1 + term / c
        fraction *= c * d
        if abs(1 - c * d) < 1e-12:  # noqa: PLR2004  the precision of the quantile is lower
            break
    return front * (fraction - 1) / alpha
