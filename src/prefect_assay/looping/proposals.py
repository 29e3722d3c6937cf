"""The next round of a loop: the designs that a file or a designer proposes, chosen within the budget, ready to be fixed.

Nothing here is ordered, and nothing is decided before it is written to the loop's log: each step may run twice.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from pathlib import PurePosixPath
from time import sleep, time
from typing import ClassVar, Final

from prefect_assay.archive.store import join_key
from prefect_assay.blocks import Archive, AssayCredentials
from prefect_assay.designs import Reading, pool_of, read_pool, split
from prefect_assay.errors import DesignerFailed, InvalidSequences, InvalidSpec
from prefect_assay.looping.book import LoopBook, PoolFile, Round, RoundFixed
from prefect_assay.looping.deployed import proposed_pool, run_designer
from prefect_assay.looping.files import DesignFiles, campaign_of, design_files, snapshot, without_rounds
from prefect_assay.looping.history import Placed, loop_history, with_newest_tables
from prefect_assay.looping.rules import Stop, affordable
from prefect_assay.models.billing import usd
from prefect_assay.models.candidate import Candidate
from prefect_assay.models.selection import Choice, KeptFates, Selection, SelectionSettings
from prefect_assay.models.sequences import Pool, Sequences
from prefect_assay.models.spec import Assay, ExperimentSpec
from prefect_assay.results import summary_csv
from prefect_assay.runs import PollPolicy, wait_until
from prefect_assay.selection import history_of, select
from prefect_assay.sources import Listed
from prefect_assay.tasks.estimate import estimate_cost, resolve_target
from prefect_assay.tasks.propose import is_function, propose_designs
from prefect_assay.waiting import WaitsFor

# Prefect's time-out of a wait for files; the sweep wakes the run at its deadline long before.
_BACKUP: Final = timedelta(days=30)
_GIVEN_UP_SECONDS: Final = 3600  # a file that is empty or was not changed for so long is not being written
_FILE: Final = "file "  # the first word of the origin of a file's round
_CLOCK_STEP: Final = 0.01  # file systems round times


class OverBudget(Exception):
    """The loop's budget does not cover the next round, in words for people."""

    stop: ClassVar = Stop.BUDGET


class NothingToMeasure(Exception):
    """The selection left out every candidate of the round, in words for people."""

    stop: ClassVar = Stop.NOTHING_TO_MEASURE


class UnreadableDesigns(InvalidSequences):
    """The designs of one file cannot be ordered; other files may be."""

    def __init__(self, name: str, campaign_id: str, error: InvalidSequences) -> None:
        super().__init__(error.findings)
        self.name = name
        self.campaign_id = campaign_id


@dataclass(frozen=True)
class Loop:
    """What all rounds of a loop share."""

    loop_id: str
    source: str | None
    designer: str | None
    assay: Assay
    credentials: AssayCredentials
    archive: Archive
    reading: Reading
    designs_per_round: int | None
    selection: SelectionSettings | None
    per_experiment: int
    settle_seconds: float
    wait_days: float
    poll: PollPolicy
    timeout: timedelta
    scope: Callable[[], str]  # separates its runs from those of another archive; asks the service
    placed: Placed

    @cached_property
    def book(self) -> LoopBook:
        """The loop's log, opened on first use."""
        return LoopBook(self.archive.get_store(), self.archive.prefix, self.loop_id)

    @property
    def n(self) -> int:
        """How many designs a designer is asked for."""
        return self.designs_per_round or self.per_experiment


def next_round(
    loop: Loop, number: int, budget_left: int | None, *, since: datetime, skip: frozenset[str] = frozenset()
) -> RoundFixed | None:
    """The next round: of the source's next file, else of the designer; None if there is neither.

    A deployed run may not return: it suspends until there is a file, or until the designer's run has ended. `since` is
    when the wait for a file began, and `skip` has the campaign ids of files that cannot be read.

    Raises:
        OverBudget: the budget does not cover the round.
        NothingToMeasure: the selection left out every candidate.
        DesignerFailed: the designer gave nothing.
        InvalidSequences: its designs cannot be ordered.
        UnreadableDesigns: those of a file cannot be ordered.
    """
    file = _next_file(loop, since, skip)
    if file is not None:
        return _of_file(loop, number, file, budget_left)
    if loop.designer is None:
        return None
    rounds = loop.book.read().rounds
    if is_function(loop.designer):
        history = loop_history(loop.archive, rounds, loop.placed)
        candidates = propose_designs(loop.designer, history, loop.n, budget_left, number)
        pool = loop.book.keep_candidates(candidates, loop.designer)
        return _chosen(loop, number, pool, pool_of(candidates, loop.designer), budget_left)
    before = next(iter(with_newest_tables(loop.archive, rounds[-1:], None)), None)
    offered = {
        "loop_id": loop.loop_id,
        "round": number,
        "n": loop.n,
        "budget_cents": budget_left,
        "history": _kept_history(loop, rounds),
        "measurements": before.ended.table if before and before.ended else None,
        "round_name": before.fixed.name if before else None,
    }
    writes = run_designer(
        loop.designer,
        offered,
        book=loop.book,
        number=number,
        scope=loop.scope(),
        timeout=loop.timeout,
        poll=loop.poll,
        left=lambda writes: _has_designs(loop, number, skip, writes=writes),
    )
    if writes:
        pool = proposed_pool(loop.book, number, loop.designer, loop.reading)
        with loop.book.opened_pool(pool) as path:
            return _chosen(loop, number, pool, read_pool(str(path), reading=loop.reading), budget_left)
    # Its run has ended, so its file is complete.
    written = _look(loop, skip, settle=0.0).complete
    if not written:
        raise DesignerFailed(
            f"round {number}: {loop.designer} completed and left no new design file in {loop.source}; nothing was "
            "ordered. Let it write one, or take the parameter `candidates`; then press Retry or start the loop again"
        )
    return _of_file(loop, number, written[0], budget_left)


def _has_designs(loop: Loop, number: int, skip: frozenset[str], *, writes: bool) -> bool:
    if not writes:
        return bool(_look(loop, skip, settle=0.0).complete)
    try:
        return proposed_pool(loop.book, number, str(loop.designer), loop.reading).designs > 0
    except (DesignerFailed, InvalidSequences):
        return False


def _kept_history(loop: Loop, rounds: Sequence[Round]) -> str | None:
    """The address of the history as a table; None before the first order."""
    history = loop_history(loop.archive, rounds, loop.placed)
    if not history:
        return None
    body = summary_csv(history)
    # Results also come after a round has ended, so that the rounds alone do not name the content.
    name = f"after-{len(rounds):06d}-{hashlib.sha256(body).hexdigest()[:16]}.csv"
    key = join_key(loop.book.folder, "HISTORY", name)
    loop.book.store.put_if_absent(key, body, "text/csv")
    return loop.book.store.location(key)


def _look(loop: Loop, skip: frozenset[str], *, settle: float) -> DesignFiles:
    if not loop.source:
        return DesignFiles()
    files = design_files(loop.source, now=time(), settle=settle)
    rounds = {entry.fixed.campaign_id: entry.fixed for entry in loop.book.read().rounds}
    new = without_rounds(files, loop.loop_id, skip | rounds.keys())
    for file in (*files.complete, *files.unfinished):
        campaign_id = campaign_of(loop.loop_id, file.name)
        other = rounds.get(campaign_id)
        if other and campaign_id not in skip and not _is_of_file(other, file.name):
            finding = (
                f"{file.address} is not measured: round {other.number}, of {other.origin}, has its campaign id, {campaign_id}. "
                "Rename the file, or move it away if it was measured under another name"
            )
            raise UnreadableDesigns(PurePosixPath(file.name).stem, campaign_id, InvalidSequences([finding]))
    return new


def _is_of_file(fixed: RoundFixed, name: str) -> bool:
    return fixed.origin.startswith(_FILE) and fixed.pool.name == name


def _next_file(loop: Loop, since: datetime, skip: frozenset[str]) -> Listed | None:
    """The next complete file; waits for one that is being written, and without a designer for the next one."""
    if not loop.source:
        return None
    until = since + timedelta(days=0 if loop.designer else loop.wait_days)
    held = False

    def ready() -> tuple[Listed | None] | None:
        nonlocal held
        files = _look(loop, skip, settle=loop.settle_seconds)
        if files.unfinished and not files.complete and not held:
            # Holding the process for so long costs less than another start of it.
            held = True
            sleep(files.settles_in(time(), loop.settle_seconds) + _CLOCK_STEP)
            files = _look(loop, skip, settle=loop.settle_seconds)
        if files.complete:
            return (files.complete[0],)
        growing = any(time() - file.changed < _GIVEN_UP_SECONDS for file in files.unfinished)
        return None if growing or datetime.now(UTC) < until else (None,)

    found = ready()
    if found is not None:
        return found[0]
    until = max(until, datetime.now(UTC) + timedelta(seconds=_GIVEN_UP_SECONDS))
    seen = design_files(loop.source, now=time(), settle=loop.settle_seconds).fingerprint()
    key = f"{WaitsFor.DESIGNS}-{seen}-until-{int(until.timestamp())}"
    return wait_until(ready, key=key, timeout=until - datetime.now(UTC) + _BACKUP, poll=loop.poll)[0]


def _of_file(loop: Loop, number: int, file: Listed, budget_left: int | None) -> RoundFixed:
    name = file.name.rpartition(".")[0]
    campaign_id = campaign_of(loop.loop_id, file.name)
    with snapshot(file) as path:
        try:
            designs = read_pool(str(path), reading=loop.reading)
        except InvalidSequences as error:
            findings = [finding.replace(str(path), file.address) for finding in error.findings]
            raise UnreadableDesigns(name, campaign_id, InvalidSequences(findings)) from None
        pool = loop.book.keep_file(path, file.name, len(designs))
    whole = loop.designs_per_round is None and loop.selection is None
    fixed = _chosen(loop, number, pool, designs, budget_left, whole=whole)
    return fixed.model_copy(
        update={"name": name, "campaign_id": campaign_id, "origin": f"{_FILE}{file.address}"}
    )


def _chosen(
    loop: Loop, number: int, pool: PoolFile, designs: Pool, budget_left: int | None, *, whole: bool = False
) -> RoundFixed:
    """The decision on a round: as many designs as were asked for and can be paid, by selection or in their order.

    The designs of a file are measured all or not at all, unless a number or a selection is set.
    """
    wanted = len(designs) if whole else min(loop.n, len(designs))
    count, price_cents = _affordable(loop, number, designs, wanted, wanted if whole else 1, budget_left)
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
    if loop.selection is not None:
        history = history_of(loop_history(loop.archive, loop.book.read().rounds, loop.placed))
        selected = select(designs, history, count, loop.selection, price_cents=price_cents)
        if not selected.choices:
            raise NothingToMeasure(
                f"round {number}: none of {len(designs)} candidates is left to measure ({_listed(selected)})"
            )
        return decided.model_copy(
            update={
                "choices": selected.choices,
                "policy": selected.policy.value,
                "seed": selected.seed,
                "counts": {fate.value: found for fate, found in selected.counts().items()},
                "notes": selected.notes,
                "fates": KeptFates.of(selected),
                "method_column": loop.selection.method_column,
            }
        )
    reason = f"one of the first {count} of {len(designs)} designs that were proposed"
    if count < wanted:
        reason += "; the budget allows no more"
    choices = (
        Choice(candidate=Candidate.of(designs[at]), rank=at + 1, price_cents=price_cents, reason=reason)
        for at in range(count)
    )
    return decided.model_copy(update={"choices": tuple(choices)})


def _free_name(loop: Loop, number: int) -> str:
    """The name of a designer's round; a file of that name may have been a round before."""
    taken, name = loop.book.read().campaigns, f"round-{number:03d}"
    names = (name, *(f"{name}-{again}" for again in range(2, len(taken) + 3)))
    return next(free for free in names if f"{loop.loop_id}-{free}" not in taken)


def _listed(selected: Selection) -> str:
    return ", ".join(f"{count} {fate.value}" for fate, count in selected.counts().items())


def _affordable(
    loop: Loop, number: int, designs: Pool, wanted: int, least: int, budget_left: int | None
) -> tuple[int, int | None]:
    """How many designs can be paid, and what one of them costs; OverBudget if not even `least`."""
    if budget_left is None:
        return wanted, None
    price = _pricing(loop, designs)
    fits = affordable(price, wanted, budget_left)
    if fits is None:
        return wanted, None  # a quote is needed, and the campaign's cap bounds it
    if fits < least:
        what = "one design" if least == 1 else f"{least} designs"
        raise OverBudget(
            f"{what} of round {number} would cost {usd(price(least))}, and the budget leaves {usd(budget_left)}"
        )
    total = price(fits)
    return fits, None if total is None else -(-total // fits)


def _pricing(loop: Loop, designs: Pool) -> Callable[[int], int | None]:
    """What the first so many designs cost, by the service's estimates; None if it gives no price."""
    target = resolve_target(loop.credentials, loop.assay)

    @cache
    def price(count: int) -> int | None:
        items = tuple(designs[at] for at in range(count))
        try:
            batches = split(Sequences(source=loop.loop_id, items=items), loop.assay, loop.per_experiment)
        except InvalidSpec:  # so many designs do not fit the assay
            return None
        specs = [ExperimentSpec.of(loop.assay, batch, target.id if target else None) for batch in batches]
        totals = [estimate_cost(loop.credentials, spec).total_cents for spec in specs]
        return None if None in totals else sum(total for total in totals if total is not None)

    return price
