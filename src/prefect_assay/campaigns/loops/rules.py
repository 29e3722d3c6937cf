"""When a loop stops, and what it may still spend: pure decisions from the rounds so far. Knows no store and no Prefect.

A loop improves one value, which follows from its assay: the lowest K_D (M), the highest melting temperature (degrees
Celsius), or the highest concentration (nM).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

from prefect_assay.analysis.results import DesignSummary, Outcome, format_objective
from prefect_assay.analysis.results.row import OPEN
from prefect_assay.service.assays import Objective, describe_objective
from prefect_assay.service.models.billing import usd
from prefect_assay.service.words import many

_NOT_MEASURED: Final = OPEN | {Outcome.NO_EXPRESSION}


def best_value(designs: Iterable[DesignSummary], objective: Objective | None) -> float | None:
    """The best value of a summary table, controls left out; None if no design has one.

    A limit counts if the design is at least that good: K_D below a value, a melting temperature or a concentration above one.
    """
    measured = [design for design in designs if not design.control and design.outcome is Outcome.MEASURED]
    # Next to a K_D the qualifier is that of the K_D.
    known = [design for design in measured if design.kd_M is not None or design.qualifier != "<"]
    match objective:
        case Objective.AFFINITY:
            return min(
                (design.kd_M for design in measured if design.kd_M and design.qualifier != ">"), default=None
            )
        case Objective.MELTING:
            return max((design.tm_C for design in known if design.tm_C is not None), default=None)
        case Objective.EXPRESSION:
            concentrations_nm = [design.concentration_nM for design in known]
            return max((value for value in concentrations_nm if value is not None), default=None)
        case None:
            return None
        case _:
            assert_never(objective)


def has_measurement(designs: Iterable[DesignSummary]) -> bool:
    """Return True if the laboratory could say anything about at least one design."""
    return any(design.outcome not in _NOT_MEASURED for design in designs if not design.control)


def is_better(value: float, than: float | None, objective: Objective) -> bool:
    """Return True if a value improves on another one, or on none."""
    if than is None:
        return True
    return value < than if describe_objective(objective).lower_is_better else value > than


def best_of(values: Iterable[float | None], objective: Objective | None) -> float | None:
    """The best of several rounds' values."""
    best: float | None = None
    for value in values:
        if objective is not None and value is not None and is_better(value, best, objective):
            best = value
    return best


def format_value(value: float | None, objective: Objective | None) -> str:
    """A value for people, such as `K_D 3.20 nM`."""
    if value is None or objective is None:
        return "none"
    return f"{describe_objective(objective).name} {format_objective(value, objective)}"


class Stop(StrEnum):
    """Why a loop has ended."""

    GOAL = "goal"
    ROUNDS = "rounds"
    BUDGET = "budget"
    NO_IMPROVEMENT = "no_improvement"
    PERSON = "person"
    NOTHING_TO_MEASURE = "nothing_to_measure"
    NO_MORE_DESIGNS = "no_more_designs"
    RUNS_ELSEWHERE = "runs_elsewhere"
    FAILED = "failed"


@dataclass(frozen=True)
class StopRules:
    """The rules. `goals` are in the units of `best_value`; `flat_rounds`: rounds in a row without improvement."""

    objective: Objective | None
    max_rounds: int
    goals: Mapping[Objective, float]
    budget_cents: int | None = None
    flat_rounds: int | None = None

    def misfits(self) -> list[str]:
        """The rules that the assay's results cannot decide, one line each."""
        lines = [
            f"{describe_objective(objective).name}: a goal for it needs another assay than this loop's"
            for objective in self.goals
            if objective is not self.objective
        ]
        if self.flat_rounds is not None and self.objective is None:
            lines.append(
                "stop_after_flat_rounds: this assay gives no value that could improve; leave it empty"
            )
        return lines


@dataclass(frozen=True)
class RoundValue:
    """What the rules need of a round that has ended."""

    name: str
    best: float | None


def stop_reason(rules: StopRules, ended: Sequence[RoundValue], spent_cents: int) -> tuple[Stop, str] | None:
    """Why no further round begins after these, in words for people; None to go on."""
    goal = rules.goals.get(rules.objective) if rules.objective else None
    if rules.objective and goal is not None:
        for done in ended:
            if done.best is not None and not is_better(goal, done.best, rules.objective):
                reached = format_value(done.best, rules.objective)
                goal_words = format_objective(goal, rules.objective)
                return Stop.GOAL, f"round {done.name} reached the goal of {goal_words} with {reached}"
    if len(ended) >= rules.max_rounds:
        return Stop.ROUNDS, f"the loop has had its {many(rules.max_rounds, 'round')}"
    if rules.budget_cents is not None and spent_cents >= rules.budget_cents:
        return Stop.BUDGET, f"{usd(spent_cents)} of the budget of {usd(rules.budget_cents)} is spent"
    if rules.flat_rounds is not None and rules.objective is not None:
        flat = rounds_without_improvement([done.best for done in ended], rules.objective)
        if flat >= rules.flat_rounds:
            best = format_value(best_of([done.best for done in ended], rules.objective), rules.objective)
            return (
                Stop.NO_IMPROVEMENT,
                f"no improvement in the last {many(flat, 'round')}; the best is {best}",
            )
    return None


def rounds_without_improvement(values: Sequence[float | None], objective: Objective) -> int:
    """How many of the last rounds brought no better value. The first round has nothing to improve on."""
    flat = 0
    best: float | None = None
    for position, value in enumerate(values):
        if value is not None and is_better(value, best, objective):
            best, flat = value, 0
        elif position:
            flat += 1
    return flat


def count_affordable(
    price: Callable[[int], int | None],
    accepts_count: Callable[[int], bool],
    design_count: int,
    left_cents: int,
) -> int | None:
    """The most designs, up to `design_count`, whose price is within `left_cents`; None if a price is not known.

    `price` gives the price in cents of the first N designs, and rises with N; `accepts_count` says whether the assay takes
    that number.
    """
    total = price(design_count)
    if total is None:
        return None
    if total <= left_cents:
        return design_count
    fits, least, most = 0, 1, design_count - 1
    while least <= most:
        middle = (least + most) // 2
        count = next((count for count in range(middle, least - 1, -1) if accepts_count(count)), None)
        if count is None:
            least = middle + 1
            continue
        total = price(count)
        if total is None:
            return None
        if total <= left_cents:
            fits, least = count, middle + 1
        else:
            most = count - 1
    return fits
