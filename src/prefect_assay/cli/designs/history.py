"""`prefect-assay designs history`: what became of all earlier proposals, per method, and how well scores predicted it."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from prefect_assay.analysis.plots import find_score_columns
from prefect_assay.analysis.results import DesignSummary, write_summary_csv
from prefect_assay.analysis.results.quantities import finite_or_none
from prefect_assay.analysis.selection import (
    CALIBRATION,
    Calibration,
    MethodRecord,
    ScoreRecord,
    calibrate_chances,
    correlate_score,
    count_by_method,
    drop_repeats,
)
from prefect_assay.analysis.tables.candidates import Proposals, read_proposals
from prefect_assay.analysis.tables.designs import Unanswered, read_measured_designs
from prefect_assay.archive import Store
from prefect_assay.campaigns.loops.loop_log import LoopLog
from prefect_assay.cli.archives.archive import open_archive
from prefect_assay.cli.archives.results import write_table
from prefect_assay.cli.output import TerminalConsole, make_plain_console, print_json
from prefect_assay.designs.candidate import method_of
from prefect_assay.designs.selection import Fate, SelectionSettings
from prefect_assay.errors import ArchiveError
from prefect_assay.orders.ledger import Ledgers, known_archive_id

# A design that is missing in this table is bought again by the next selection.
_INCOMPLETE: Final = (
    "the table would lack designs that may be ordered, and was not written:\n{plans}\n"
    "`prefect-assay archive verify` names what is damaged; restore it from a backup, or upgrade where another version "
    "wrote it. Without --csv the history is shown"
)
_BOUGHT: Final = frozenset({Fate.CHOSEN, Fate.CONTROL})


@dataclass(frozen=True, slots=True)
class Track:
    """What the command shows. `passed_over` counts candidates that were not bought, by why."""

    methods: tuple[MethodRecord, ...]
    scores: tuple[ScoreRecord, ...]
    predictions: tuple[Calibration, ...]
    designs: tuple[DesignSummary, ...]
    passed_over: dict[str, int]
    notes: tuple[str, ...]


def show_history(
    path: Path | None,
    archive: str | None,
    settings: SelectionSettings,
    *,
    account: str | None = None,
    loop: str | None,
    columns: Sequence[str],
    csv_file: str | None,
    as_json: bool,
) -> None:
    """Read the tables, write the designs if a file is named, and print the methods and the scores."""
    store, prefix = open_archive(path, archive, account)
    proposals = read_proposals(store, prefix, loop)
    measured = read_measured_designs(store, prefix, loop)
    counted = drop_repeats(measured.designs, "the tables")
    if csv_file is not None and measured.unread_plans:
        raise ArchiveError(_INCOMPLETE.format(plans="\n".join(measured.unread_plans)))
    placed = _list_placed(store, prefix, (*measured.unanswered, *measured.planned))
    ordered = tuple(
        entry.design for entry in (*measured.unanswered, *measured.planned) if entry[:2] in placed
    )
    if not proposals and not measured.designs and not ordered:
        what = f"of loop {loop}" if loop else "of any design"
        raise ArchiveError(
            f"{store.location(prefix)} has no history {what} in its tables; `prefect-assay archive tables` writes them"
        )
    over, why = _not_bought(proposals, [entry for entry in measured.unanswered if entry[:2] not in placed])
    score_columns = columns or find_score_columns(counted.designs)
    problems = _list_problems(store, prefix, {line.loop_id for line in proposals})
    track = Track(
        methods=count_by_method(
            counted.designs, settings, over, Counter(method_of(design.attributes) for design in ordered)
        ),
        scores=tuple(correlate_score(counted.designs, column, settings) for column in score_columns),
        predictions=calibrate_chances(counted.designs, settings),
        designs=counted.designs,
        passed_over=dict(why.most_common()),
        notes=(*measured.unread_plans, *measured.notes, *counted.notes, *problems),
    )
    if csv_file is not None:
        written = (*track.designs, *ordered)
        write_table(csv_file, write_summary_csv(written), len(written))
    if as_json:
        print_json(_summarize_track(track))
    elif csv_file != "-":
        _show_track(TerminalConsole(), track)
    if csv_file is not None or not as_json:
        for line in track.notes:
            make_plain_console(stderr=True).print(line)


def _list_placed(store: Store, prefix: str, designs: Iterable[Unanswered]) -> set[tuple[str, str | None]]:
    """Campaign and key of the orders that were placed: the next selection must not buy their designs again."""
    if known_archive_id(store, prefix) is None:
        return set()
    every = Ledgers.list_all(store, prefix)
    return {
        (campaign_id, key)
        for campaign_id, key in {design[:2] for design in designs}
        if key is not None and any(ledgers.open_order(campaign_id, key).read().placed for ledgers in every)
    }


def _not_bought(
    proposals: Iterable[Proposals], without_order: Sequence[Unanswered]
) -> tuple[Counter[str | None], Counter[str]]:
    """How many candidates were proposed and not bought, by method and by why.

    Designs whose plan cannot be read count as proposed only: whether they are ordered is not known.
    """
    over, why = Counter[str | None](), Counter[str]()
    for line in proposals:
        if line.fate not in _BOUGHT:
            over[line.method] += line.candidates
            why[line.fate] += line.candidates
    over.update(method_of(entry.design.attributes) for entry in without_order)
    if not_ordered := sum(not entry.plan_unread for entry in without_order):
        why["not_ordered"] = not_ordered
    return over, why


def _list_problems(store: Store, prefix: str, loops: set[str]) -> Iterator[str]:
    """Why rounds left designs without an outcome, by their loops' logs."""
    for loop_id in sorted(loops):
        for entry in LoopLog(store, prefix, loop_id).read().rounds:
            if entry.problem:
                yield f"loop {loop_id}, round {entry.fixed.number}: {entry.problem}"


def _summarize_track(track: Track) -> dict[str, Any]:
    return {
        "methods": [
            {
                "method": row.method,
                "proposed": row.proposed,
                "bought": row.bought,
                **row.rate.as_json(),
            }
            for row in track.methods
        ],
        "scores": [asdict(row) | {"rho": finite_or_none(row.rho)} for row in track.scores],
        "predictions": [
            {
                "low": row.low,
                "high": min(row.high, 1.0),
                "predicted": row.predicted,
                **row.rate.as_json(),
            }
            for row in track.predictions
        ],
        "designs": len(track.designs),
        "passed_over": track.passed_over,
        "notes": list(track.notes),
    }


def _show_track(console: Console, track: Track) -> None:
    table = Table("Method", "Proposed", "Bought", "Measured", "Hits", "Hit rate", "95 % interval")
    for record in track.methods:
        counts = (record.proposed, record.bought, record.rate.known, record.rate.hits)
        table.add_row(
            Text(" ".join(record.method.split())), *(f"{count:,}" for count in counts), *record.rate.cells
        )
    console.print(table)
    if track.scores:
        scores = Table("Score", "Rank correlation", "Designs")
        for score in track.scores:
            rho = "" if math.isnan(score.rho) else f"{score.rho:+.2f}"
            scores.add_row(Text(" ".join(score.column.split())), rho, f"{score.designs:,}")
        console.print(scores)
    if track.predictions:
        predicted = Table(*CALIBRATION)
        for band in track.predictions:
            predicted.add_row(*band.cells)
        console.print(predicted)
    if track.passed_over:
        listed = ", ".join(f"{count:,} {why.replace('_', ' ')}" for why, count in track.passed_over.items())
        make_plain_console().print(f"not bought: {listed}")
