"""Hits and hit rates: the only place that decides what counts as a hit, and of how many designs a rate is.

A hit is what a buyer pays for, so a design that does not express is a miss, like a non-binder. Designs whose outcome is open or
unknown are not counted, and neither are controls, which were not designed. A design that was measured several times counts once.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, assert_never

from prefect_assay.analysis.results.calls import Call, read_call
from prefect_assay.analysis.results.design import DesignSummary, find_main_quantity, find_objective
from prefect_assay.analysis.results.quantities import SIGNS, finite_or_none
from prefect_assay.analysis.results.repeats import join_repeats
from prefect_assay.analysis.results.row import HAS_RESULT, OPEN, Outcome
from prefect_assay.service.assays import Objective, describe_objective

_EXPRESSED: Final = {Call.EXPRESSES: True, Call.NO_EXPRESSION: False}
_NM: Final = 1e-9
_JEFFREYS: Final = 0.5  # both parameters of the prior
_TAIL: Final = 0.025  # on each side of a 95 % interval


@dataclass(frozen=True, slots=True)
class HitRate:
    """Hits of the designs whose outcome is known."""

    hits: int
    known: int

    @property
    def rate(self) -> float:
        """The share of hits; NaN when no outcome is known."""
        return self.hits / self.known if self.known else math.nan

    @property
    def words(self) -> str:
        """`18 of 35`: the only form in which people see a rate."""
        return f"{self.hits:,} of {self.known:,}"

    @property
    def cells(self) -> tuple[str, str]:
        """`51%` and `35% to 67%`, the rate and its 95 % interval; empty when no outcome is known."""
        low, high = self.interval()
        return (f"{self.rate:.0%}", f"{low:.0%} to {high:.0%}") if self.known else ("", "")

    def as_json(self) -> dict[str, Any]:
        """The rate for programs; `measured` is the number of designs with a known outcome."""
        rate, interval = (self.rate, [*self.interval()]) if self.known else (None, None)
        return {"measured": self.known, "hits": self.hits, "hit_rate": rate, "interval": interval}

    def interval(self) -> tuple[float, float]:
        """The 95 % Jeffreys interval of the rate: equal tails of Beta(hits + 1/2, misses + 1/2), and an end at 0 or 1 where none or all hit."""
        alpha, beta = self.hits + _JEFFREYS, self.known - self.hits + _JEFFREYS
        low = compute_beta_quantile(_TAIL, alpha, beta) if self.hits else 0.0
        high = compute_beta_quantile(1 - _TAIL, alpha, beta) if self.hits < self.known else 1.0
        return low, high


@dataclass(frozen=True, slots=True)
class Tally:
    """How the designs of a table did, controls left out: the hit rate, and how many of the others had which outcome.

    `binds`: a hit is a design that binds, else one that was measured.
    """

    rate: HitRate
    binds: bool
    outcomes: Mapping[Outcome, int]

    @property
    def words(self) -> str:
        """`18 of 35 bind, 3 did not express, 5 unknown`; those that did not express are among the 35."""
        verb = "bind" if self.binds else "measured"
        first = f"{self.rate.words} {verb}" if self.rate.known else "no outcome is known yet"
        return ", ".join([first, *self.others])

    @property
    def others(self) -> tuple[str, ...]:
        """What became of designs that did not express, and of those that the rate does not count."""
        return tuple(
            f"{count:,} {words}"
            for outcome, words in _OTHERS.items()
            if (count := self.outcomes.get(outcome, 0))
        )


_OTHERS: Final = {
    Outcome.NO_EXPRESSION: "did not express",
    Outcome.UNKNOWN: "unknown",
    Outcome.PENDING: "pending",
    Outcome.MISSING: "not reported",
}


def count_hits(designs: Iterable[DesignSummary]) -> Tally:
    """Count the designs of a table, each by what its own assay measures; a design with several measurements counts once."""
    candidates = [design for design in join_repeats(designs) if not design.control]
    hits = [hit for design in candidates if (hit := is_hit(design, find_objective(design))) is not None]
    return Tally(
        rate=HitRate(sum(hits), len(hits)),
        binds=any(design.kd_M is not None or design.binding for design in candidates),
        outcomes=Counter(design.outcome for design in candidates),
    )


def is_hit(
    design: DesignSummary, objective: Objective | None = Objective.AFFINITY, limit: float | None = None
) -> bool | None:
    """Return True for a hit, False for a miss, None where the outcome is not known.

    Args:
        design: one row of a summary table.
        objective: what a hit has; None counts each design with a measured value.
        limit: what a hit reaches, in the unit of the objective. A value that is a limit counts where it decides: K_D > 100 nM
            misses 100 nM, and says nothing about 200 nM.
    """
    if design.control:
        return None
    if design.outcome is Outcome.NO_EXPRESSION:
        return False
    if objective is None:
        return None if design.outcome in OPEN else design.outcome in HAS_RESULT
    if objective is Objective.AFFINITY and design.outcome not in HAS_RESULT:
        return False if design.outcome is Outcome.NO_BINDING else None
    low = describe_objective(objective).lower_is_better
    value, qualifier = _get_value(design, objective), _get_qualifier(design, objective)
    if limit is None:
        measured = value is not None and qualifier != (">" if low else "<")
        return True if measured else _is_called_hit(design, objective)
    return None if value is None else _reaches(value, qualifier, limit, low=low)


def _reaches(value: float, qualifier: str | None, limit: float, *, low: bool) -> bool | None:
    """Whether a value reaches the hit limit; `low`: a lower one is better. None if it is a limit that leaves this open."""
    signed, threshold = (-value, -limit) if low else (value, limit)
    if qualifier is None:
        return signed >= threshold
    if (qualifier == "<") is low:  # at least so good
        return True if signed >= threshold else None
    return False if signed <= threshold else None


def _is_called_hit(design: DesignSummary, objective: Objective) -> bool | None:
    """A hit without a number, in the laboratory's words; None for unknown ones."""
    match objective:
        case Objective.AFFINITY:
            binds = design.outcome is Outcome.BINDING or read_call(design.binding).call is Call.BINDS
            return True if binds else None
        case Objective.MELTING:
            return None
        case Objective.EXPRESSION:
            return _EXPRESSED.get(read_call(design.expression, "expression").call)
        case _:
            assert_never(objective)


def get_objective_value(design: DesignSummary, objective: Objective) -> float | None:
    """K_D in nM, melting temperature in degrees Celsius or concentration in nM; None if it was not measured.

    A limit is not a measurement.
    """
    return None if _get_qualifier(design, objective) else _get_value(design, objective)


def find_limit(design: DesignSummary, objective: Objective) -> tuple[float, int] | None:
    """A limit in the unit of the objective, and 1 if the design is at most so good, -1 if at least; None without one."""
    qualifier, value = _get_qualifier(design, objective), _get_value(design, objective)
    if qualifier is None or value is None:
        return None
    return value, 1 if (qualifier == ">") is describe_objective(objective).lower_is_better else -1


def _get_value(design: DesignSummary, objective: Objective) -> float | None:
    match objective:
        case Objective.AFFINITY:
            value = design.kd_M / _NM if design.kd_M and design.outcome is Outcome.MEASURED else None
        case Objective.MELTING:
            value = design.tm_C
        case Objective.EXPRESSION:
            value = design.concentration_nM
        case _:
            assert_never(objective)
    return finite_or_none(value)


def _get_qualifier(design: DesignSummary, objective: Objective) -> str | None:
    """`<` or `>` if the value is a limit: the qualifier is that of the quantity that ranks the design."""
    is_main = find_main_quantity(design) is describe_objective(objective).quantity
    return SIGNS.get(design.qualifier or "=") if is_main else None


def count_hit_rates(
    designs: Iterable[DesignSummary],
    group_of: Callable[[DesignSummary], Hashable],
    objective: Objective | None = Objective.AFFINITY,
    limit: float | None = None,
) -> Mapping[Hashable, HitRate]:
    """The hit rate of each group; designs whose group is None are left out."""
    groups: defaultdict[Hashable, list[bool]] = defaultdict(list)
    for design in join_repeats(designs, objective):
        hit, group = is_hit(design, objective, limit), group_of(design)
        if hit is not None and group is not None:
            groups[group].append(hit)
    return {group: HitRate(sum(hits), len(hits)) for group, hits in groups.items()}


def compute_beta_quantile(share: float, alpha: float, beta: float) -> float:
    """The value below which a Beta distribution has this share, to ten digits."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if _compute_beta_share(middle, alpha, beta) < share:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _compute_beta_share(x: float, alpha: float, beta: float) -> float:
    """The regularized incomplete beta function, by its continued fraction (NIST DLMF 8.17.22), 0 < x < 1."""
    if x > (alpha + 1) / (alpha + beta + 2):  # where it converges fast
        return 1 - _compute_beta_share(1 - x, beta, alpha)
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
