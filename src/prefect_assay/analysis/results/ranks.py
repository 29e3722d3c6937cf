"""Groups designs whose ranks could swap, because the scatter between replicates cannot tell them apart. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Final

from prefect_assay.analysis.results.design import DesignSummary
from prefect_assay.analysis.results.interval import Mean, is_apart
from prefect_assay.analysis.results.row import Outcome

_FEWEST: Final = 2


@dataclass(frozen=True, slots=True)
class Ranked:
    """A design with the means behind its values: of log10 K_D (M) and of T_m (degrees Celsius)."""

    summary: DesignSummary
    log_kd: Mean | None = None
    tm: Mean | None = None


def assign_groups(ranked: Sequence[Ranked]) -> tuple[DesignSummary, ...]:
    """The designs in their order with their groups: A holds the best one and all that cannot be told apart from it.

    A group begins with the first design that is worse than the first of the group before, beyond the scatter (95 %). There are
    no groups over several targets, and none where no scatter is known. Controls have none.
    """
    summaries = [design.summary for design in ranked]
    compared = [design for design in ranked if not design.summary.control]
    letters: dict[int, str] = {}
    for members in (
        [
            design
            for design in compared
            if design.summary.outcome is Outcome.MEASURED and design.summary.kd_M is not None
        ],
        [design for design in compared if design.summary.kd_M is None and design.tm is not None],
    ):
        kinds = {(design.summary.target, design.summary.result_type) for design in members}
        known = any(mean.error for design in members if (mean := design.log_kd or design.tm))
        if len(members) >= _FEWEST and len(kinds) == 1 and known:
            letters |= _number_groups(members)
    return tuple(
        summary.model_copy(update={"group": letters[id(summary)]}) if id(summary) in letters else summary
        for summary in summaries
    )


def _number_groups(members: Iterable[Ranked]) -> dict[int, str]:
    letters: dict[int, str] = {}
    first, number = None, -1
    for design in members:
        if first is None or _is_worse(design, first):
            first, number = design, number + 1
        letters[id(design.summary)] = _make_letters(number)
    return letters


def _is_worse(design: Ranked, than: Ranked) -> bool:
    """Whether a design is worse than another one, which is ranked before it."""
    if design.summary.kd_M is None:
        return bool(design.tm and than.tm and is_apart(design.tm, than.tm))
    if design.log_kd and than.log_kd:
        return is_apart(than.log_kd, design.log_kd)
    low, high = _get_lowest(design.summary), _get_highest(than.summary)
    return low is not None and high is not None and low > high


def _get_lowest(design: DesignSummary) -> float | None:
    return {None: design.kd_low_M, ">": design.kd_M}.get(design.qualifier)


def _get_highest(design: DesignSummary) -> float | None:
    return {None: design.kd_high_M, "<": design.kd_M}.get(design.qualifier)


def _make_letters(number: int) -> str:
    """`A` to `Z`, then `AA`, as spreadsheets count columns."""
    before, last = divmod(number, len(ascii_uppercase))
    return (_make_letters(before - 1) if before else "") + ascii_uppercase[last]
