"""The next round of a loop: the designs that a file or a designer proposes, chosen within the budget, ready to be fixed.

Nothing here is ordered, and nothing is decided before it is written to the loop's log: each step may run twice.
"""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from time import sleep, time
from typing import Final

from prefect_assay.analysis.results import write_summary_csv
from prefect_assay.archive.sources import Listed
from prefect_assay.archive.store import join_key
from prefect_assay.campaigns.loops.choosing import NothingToMeasure, choose_round
from prefect_assay.campaigns.loops.deployed import proposed_pool, run_designer
from prefect_assay.campaigns.loops.files import (
    DesignFiles,
    campaign_of,
    copy_listed_file,
    design_files,
    without_rounds,
)
from prefect_assay.campaigns.loops.history import loop_history, with_newest_tables
from prefect_assay.campaigns.loops.loop import Loop, Waiting, pause_after
from prefect_assay.campaigns.loops.loop_log import Round, RoundFixed
from prefect_assay.designs.proposed import pool_of
from prefect_assay.designs.read import read_pool
from prefect_assay.errors import DesignerFailed, InputError, InvalidSequences, InvalidSpec
from prefect_assay.tasks.propose import is_function, propose_designs

_GIVEN_UP_SECONDS: Final = 3600  # a file that is empty or was not changed for so long is not being written
_HELD_SECONDS: Final = 60  # the longest time that a process waits for a file to be complete
_FILE: Final = "file "  # the first word of the origin of a file's round
_CLOCK_STEP: Final = 0.01  # file systems round times


class UnreadableDesigns(InvalidSequences):
    """The designs of one file cannot be ordered; other files may be."""

    def __init__(self, name: str, campaign_id: str, error: InvalidSequences) -> None:
        super().__init__(error.findings)
        self.name = name
        self.campaign_id = campaign_id


class MeasuredFile(NothingToMeasure):
    """The selection leaves out every design of one file, or cannot choose; other files may have more."""

    def __init__(self, name: str, campaign_id: str, error: NothingToMeasure | InputError) -> None:
        super().__init__(str(error))
        self.name = name
        self.campaign_id = campaign_id


def next_round(
    loop: Loop, number: int, budget_left: int | None, *, since: datetime, skip: frozenset[str] = frozenset()
) -> RoundFixed | Waiting | None:
    """The next round: of the source's next file, else of the designer; None if there is neither.

    `Waiting` if a file may still come, or while the designer's run goes on. `since` is when the wait for a file began,
    and `skip` has the campaign ids of files that are left out.

    Raises:
        OverBudget: the budget does not cover the round.
        NothingToMeasure: the selection left out every candidate of the designer.
        MeasuredFile: it left out those of a file, or could not choose among them.
        InputError: it could not choose among those of the designer.
        DesignerFailed: the designer gave nothing.
        InvalidSequences: its designs cannot be ordered.
        UnreadableDesigns: those of a file cannot be ordered.
    """
    file = _next_file(loop, since, skip)
    if isinstance(file, Waiting):
        return file
    if file is not None:
        return _of_file(loop, number, file, budget_left)
    if loop.designer is None:
        return None
    if is_function(loop.designer):
        return _of_function(loop, number, loop.designer, budget_left)
    return _of_deployment(loop, number, loop.designer, budget_left, skip)


def _of_function(loop: Loop, number: int, designer: str, budget_left: int | None) -> RoundFixed:
    history = loop_history(loop.archive, loop.loop_log.read().rounds, loop.placed)
    candidates = propose_designs(designer, history, loop.n, budget_left, number)
    pool = loop.loop_log.save_candidates(candidates, designer)
    return choose_round(loop, number, pool, pool_of(candidates, designer), budget_left)


def _of_deployment(
    loop: Loop, number: int, designer: str, budget_left: int | None, skip: frozenset[str]
) -> RoundFixed | Waiting:
    rounds = loop.loop_log.read().rounds
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
        loop, number, offered, has_designs=lambda writes: _has_designs(loop, number, skip, writes=writes)
    )
    if isinstance(writes, Waiting):
        return writes
    if writes:
        return _of_candidates(loop, number, designer, budget_left)
    # Its run has ended, so its file is complete.
    written = _list_design_files(loop, skip, settle=0.0).complete
    if not written:
        raise DesignerFailed(
            f"round {number}: {designer} completed and left no file with designs to measure in {loop.source}; nothing "
            "was ordered. Let it write one, or take the parameter `candidates`; then press Retry or start the loop again"
        )
    return _of_file(loop, number, written[0], budget_left)


def _of_candidates(loop: Loop, number: int, designer: str, budget_left: int | None) -> RoundFixed:
    pool = proposed_pool(loop.loop_log, number, designer, loop.reading)
    with loop.loop_log.opened_pool(pool) as path:
        return choose_round(loop, number, pool, read_pool(str(path), reading=loop.reading), budget_left)


def _has_designs(loop: Loop, number: int, skip: frozenset[str], *, writes: bool) -> bool:
    if not writes:
        return bool(_list_design_files(loop, skip, settle=0.0).complete)
    try:
        return _of_candidates(loop, number, str(loop.designer), None).designs > 0
    except (DesignerFailed, InputError, NothingToMeasure):
        return False


def _kept_history(loop: Loop, rounds: Sequence[Round]) -> str | None:
    """The address of the history as a table; None before the first order."""
    history = loop_history(loop.archive, rounds, loop.placed)
    if not history:
        return None
    body = write_summary_csv(history)
    # Results also come after a round has ended, so that the rounds alone do not name the content.
    name = f"after-{len(rounds):06d}-{hashlib.sha256(body).hexdigest()[:16]}.csv"
    key = join_key(loop.loop_log.folder, "HISTORY", name)
    loop.loop_log.store.put_if_absent(key, body, "text/csv")
    return loop.loop_log.store.location(key)


def _list_design_files(loop: Loop, skip: frozenset[str], *, settle: float) -> DesignFiles:
    if not loop.source:
        return DesignFiles()
    files = design_files(loop.source, now=time(), settle=settle)
    rounds = {entry.fixed.campaign_id: entry.fixed for entry in loop.loop_log.read().rounds}
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


def _next_file(loop: Loop, since: datetime, skip: frozenset[str]) -> Listed | Waiting | None:
    """The next complete file; `Waiting` for one that is being written, and without a designer for the next one."""
    if not loop.source:
        return None
    until = since + timedelta(days=0 if loop.designer else loop.options.wait_days)
    files = _list_design_files(loop, skip, settle=loop.options.settle_seconds)
    settles_in = files.settles_in(time(), loop.options.settle_seconds)
    if files.unfinished and not files.complete and settles_in <= _HELD_SECONDS:
        # Holding the process for so long costs less than another start of it.
        sleep(settles_in + _CLOCK_STEP)
        files = _list_design_files(loop, skip, settle=loop.options.settle_seconds)
    if files.complete:
        return files.complete[0]
    growing = any(time() - file.changed < _GIVEN_UP_SECONDS for file in files.unfinished)
    now = datetime.now(UTC)
    if not growing and now >= until:
        return None
    if growing:
        message = f"waits until {files.unfinished[0].address} is complete"
        pause = timedelta(seconds=max(files.settles_in(time(), loop.options.settle_seconds), _HELD_SECONDS))
    else:
        message = f"waits for the next design file in {loop.source}, until {until:%Y-%m-%d %H:%M} UTC"
        pause = min(pause_after(now - since), until - now)

    return Waiting(
        message,
        pause,
        lambda: bool(_list_design_files(loop, skip, settle=loop.options.settle_seconds).complete),
    )


def _of_file(loop: Loop, number: int, file: Listed, budget_left: int | None) -> RoundFixed:
    name = file.name.rpartition(".")[0]
    campaign_id = campaign_of(loop.loop_id, file.name)
    with copy_listed_file(file) as path:
        try:
            designs = read_pool(str(path), reading=loop.reading)
        except InvalidSequences as error:
            findings = [finding.replace(str(path), file.address) for finding in error.findings]
            raise UnreadableDesigns(name, campaign_id, InvalidSequences(findings)) from None
        pool = loop.loop_log.keep_file(path, file.name, len(designs))
    whole = loop.options.designs_per_round is None and loop.options.selection is None
    try:
        fixed = choose_round(loop, number, pool, designs, budget_left, whole=whole)
    except InvalidSequences as error:
        raise UnreadableDesigns(name, campaign_id, error) from None
    except InvalidSpec:
        raise  # such as an unknown target, which every file has
    except (NothingToMeasure, InputError) as error:
        raise MeasuredFile(name, campaign_id, error) from None
    return fixed.model_copy(
        update={"name": name, "campaign_id": campaign_id, "origin": f"{_FILE}{file.address}"}
    )
