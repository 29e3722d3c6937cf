"""The decision on a round: how many of the proposed designs the budget pays for, and which. Writes nothing."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import ClassVar

from prefect_assay.analysis.selection import make_history, select_designs
from prefect_assay.campaigns.loops.history import loop_history
from prefect_assay.campaigns.loops.loop import Loop
from prefect_assay.campaigns.loops.loop_log import PoolFile, RoundFixed
from prefect_assay.campaigns.loops.rules import Stop, count_affordable
from prefect_assay.designs.campaign import split_into_batches
from prefect_assay.designs.candidate import Candidate
from prefect_assay.designs.selection import Choice, KeptFates, Selection
from prefect_assay.errors import InvalidSequences, InvalidSpec
from prefect_assay.service.assays import ASSAY_TYPES, Objective, describe_objective
from prefect_assay.service.models.billing import usd
from prefect_assay.service.models.sequences import Batch, Pool, ProteinSequence, Sequences
from prefect_assay.service.models.spec import Assay, ExperimentSpec
from prefect_assay.service.words import many
from prefect_assay.tasks.estimate import estimate_cost, resolve_target


class OverBudget(Exception):
    """The loop's budget does not cover the next round, in words for people."""

    stop: ClassVar = Stop.BUDGET


class NothingToMeasure(Exception):
    """The selection left out every candidate of the round but its controls, in words for people."""

    stop: ClassVar = Stop.NOTHING_TO_MEASURE


def choose_round(
    loop: Loop, number: int, pool: PoolFile, designs: Pool, budget_left: int | None, *, whole: bool = False
) -> RoundFixed:
    """The decision on a round: as many designs as were asked for and can be paid, by selection or in their order.

    The designs of a file are measured all or not at all, unless a number or a selection is set (`whole`).

    Raises:
        OverBudget: the budget does not cover one design, or all of a whole file.
        NothingToMeasure: the selection left out every candidate but the controls.
        InvalidSequences: the assay does not take so few designs, or not as many as a whole file has.
    """
    design_count = len(designs) if whole else min(loop.n, len(designs))
    first = tuple(designs[index] for index in range(design_count))
    # Controls alone are not what is left of a round with designs.
    least = (
        design_count if whole else next((count for count, one in enumerate(first, 1) if not one.control), 1)
    )
    count, price_cents = _count_affordable(
        loop, number, first[: _count_accepted(loop, first, least)], least, budget_left
    )
    name = _free_name(loop, number)
    decided = RoundFixed(
        loop_id=loop.loop_id,
        number=number,
        name=name,
        campaign_id=f"{loop.loop_id}-{name}",
        origin=f"designer {loop.designer}",
        pool=pool,
        limit_cents=budget_left,
        counts={"chosen": count, "proposed": len(designs)},
        reading=loop.reading,
    )
    if whole:
        return decided
    if loop.options.selection is not None:
        # All results of a loop are for its target, whatever the designer's column of targets says, and of its assay.
        target = loop.options.selection.target or loop.assay.target or loop.loop_id
        settings = loop.options.selection.model_copy(
            update={
                "target": target,
                "objective": _find_objective(loop.assay, loop.options.selection.objective),
            }
        )
        before = loop_history(loop.archive, loop.loop_log.read().rounds, loop.placed)
        history = make_history(design.model_copy(update={"target": target}) for design in before)
        while True:  # again with fewer, where limits leave a number that the assay does not take
            selected = select_designs(
                designs,
                history,
                count,
                settings,
                price_cents=price_cents,
                rounds_left=_rounds_left(loop, number, count, price_cents, budget_left),
            )
            if all(choice.candidate.control for choice in selected.choices):
                raise NothingToMeasure(
                    f"round {number}: none of {many(len(designs), 'candidate')} is left to measure ({_list_names(selected)})"
                )
            count = _count_accepted(loop, tuple(choice.design() for choice in selected.choices), 1)
            if count == len(selected.choices):
                break
        return decided.model_copy(
            update={
                "choices": selected.choices,
                "policy": selected.policy.value,
                "seed": selected.seed,
                "counts": {fate.value: fate_count for fate, fate_count in selected.counts().items()},
                "notes": selected.notes,
                "fates": KeptFates.of(selected),
                "method_column": loop.options.selection.method_column,
            }
        )
    reason = f"one of the first {count} of {many(len(designs), 'design')} that were proposed"
    if count < design_count:
        reason += "; the budget allows no more"
    choices = (
        Choice(candidate=Candidate.of(designs[index]), rank=index + 1, price_cents=price_cents, reason=reason)
        for index in range(count)
    )
    return decided.model_copy(update={"choices": tuple(choices)})


def _find_objective(assay: Assay, objective: Objective) -> Objective:
    """The objective of the settings if the assay measures it, else the one that the assay decides on."""
    kind = ASSAY_TYPES[assay.experiment_type]
    if describe_objective(objective).quantity in kind.columns:
        return objective
    return kind.hits_by or objective


def _rounds_left(
    loop: Loop, number: int, count: int, price_cents: int | None, budget_left: int | None
) -> int:
    """How many rounds follow this one, by the loop's number of rounds and by what its budget pays for."""
    by_number = max(0, loop.options.max_rounds - number)
    if budget_left is None or not price_cents:
        return by_number
    return min(by_number, max(0, (budget_left - count * price_cents) // price_cents))


def _free_name(loop: Loop, number: int) -> str:
    """The name of a designer's round; a file of that name may have been a round before."""
    taken, name = loop.loop_log.read().campaigns, f"round-{number:03d}"
    names = (name, *(f"{name}-{again}" for again in range(2, len(taken) + 3)))
    return next(free for free in names if f"{loop.loop_id}-{free}" not in taken)


def _list_names(selected: Selection) -> str:
    return ", ".join(f"{count} {fate.value}" for fate, count in selected.counts().items())


def _count_accepted(loop: Loop, designs: Sequence[ProteinSequence], least: int) -> int:
    """The most of the first designs that the assay takes; InvalidSequences if it takes no number from `least` up."""
    findings: tuple[str, ...] = ()
    for count in range(len(designs), least - 1, -1):
        misfit = _find_misfit(loop, designs[:count])
        if not misfit:
            return count
        findings = findings or misfit
    raise InvalidSequences(findings)


def _find_misfit(loop: Loop, designs: Sequence[ProteinSequence]) -> tuple[str, ...]:
    """Why the assay does not take this number of designs; empty if it does."""
    try:
        _split(loop, designs)
    except InvalidSpec as error:
        return tuple(error.findings)
    return ()


def _count_affordable(
    loop: Loop, number: int, designs: Sequence[ProteinSequence], least: int, budget_left: int | None
) -> tuple[int, int | None]:
    """How many of the designs can be paid, and what one of them costs; OverBudget if not even `least`."""
    design_count = len(designs)
    if budget_left is None:
        return design_count, None

    def accepts_count(count: int) -> bool:
        return count >= least and not _find_misfit(loop, designs[:count])

    price = _make_pricing(loop, designs)
    fits = count_affordable(price, accepts_count, design_count, budget_left)
    if fits is None:
        return design_count, None  # a quote is needed, and the campaign's cap bounds it
    if fits < least:
        least = next(count for count in range(least, design_count + 1) if accepts_count(count))
        what = "one design" if least == 1 else f"{least:,} designs"
        raise OverBudget(
            f"{what} of round {number} would cost {usd(price(least))}, and the budget leaves {usd(budget_left)}"
        )
    total = price(fits)
    return fits, None if total is None else -(-total // fits)


def _make_pricing(loop: Loop, designs: Sequence[ProteinSequence]) -> Callable[[int], int | None]:
    """What the first `count` designs cost, a number that the assay takes, by the service's estimates; None if it gives no price."""
    target = resolve_target(loop.credentials, loop.assay)

    @cache
    def price(count: int) -> int | None:
        batches = _split(loop, designs[:count])
        specs = [ExperimentSpec.of(loop.assay, batch, target.id if target else None) for batch in batches]
        totals = [estimate_cost(loop.credentials, spec).total_cents for spec in specs]
        return None if None in totals else sum(total for total in totals if total is not None)

    return price


def _split(loop: Loop, designs: Sequence[ProteinSequence]) -> tuple[Batch, ...]:
    """The experiments of these designs; InvalidSpec if the assay does not take that number."""
    sequences = Sequences(source=loop.loop_id, items=tuple(designs))
    return split_into_batches(sequences, loop.assay, loop.reading.designs_per_experiment)
