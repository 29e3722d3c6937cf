"""`prefect-assay designs history`: what became of all earlier proposals, per method, and how well scores predicted it."""

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from prefect_assay import lake
from prefect_assay.archive import Store
from prefect_assay.books import Books, known_archive_id
from prefect_assay.cli.archives.archive import opened
from prefect_assay.cli.archives.results import write_table
from prefect_assay.errors import ArchiveError
from prefect_assay.looping import LoopBook
from prefect_assay.models.candidate import method_of
from prefect_assay.models.selection import Fate, SelectionSettings
from prefect_assay.reporting.plots import score_columns
from prefect_assay.results import DesignSummary, summary_csv
from prefect_assay.selection import MethodRecord, ScoreRecord, method_records, score_record

_NO_SCORES: Final = frozenset({"loop", "round", "selection_rank"})
_BOUGHT: Final = frozenset({Fate.CHOSEN, Fate.CONTROL})


@dataclass(frozen=True, slots=True)
class Track:
    """What the command shows. `passed_over` counts candidates that were not chosen, by why."""

    methods: tuple[MethodRecord, ...]
    scores: tuple[ScoreRecord, ...]
    designs: tuple[DesignSummary, ...]
    passed_over: dict[str, int]
    notes: tuple[str, ...]


def show_history(
    path: Path | None,
    archive: str | None,
    settings: SelectionSettings,
    *,
    loop: str | None,
    columns: Sequence[str],
    csv_file: str | None,
    as_json: bool,
) -> None:
    """Read the lake, write the designs if a file is named, and print the methods and the scores."""
    store, prefix = opened(path, archive)
    proposals = lake.proposals(store, prefix, loop)
    measured = lake.measured_designs(store, prefix, loop)
    planned = tuple(_ordered(store, prefix, measured.planned))
    if not proposals and not measured.designs and not planned:
        what = f"of loop {loop}" if loop else "of any design"
        raise ArchiveError(
            f"{store.location(prefix)} has no history {what} in its lake; `prefect-assay archive lake` writes it"
        )
    not_chosen = [line for line in proposals if line.fate not in _BOUGHT]
    over, why = Counter[str | None](), Counter[str]()
    for line in not_chosen:
        over[line.method] += line.candidates
        why[line.fate] += line.candidates
    later = Counter(
        method_of(design.attributes) for design in (*(each.design for each in measured.unanswered), *planned)
    )
    wanted = columns or [name for name in score_columns(measured.designs) if name not in _NO_SCORES]
    track = Track(
        methods=method_records(measured.designs, settings, over, later),
        scores=tuple(score_record(measured.designs, column, settings) for column in wanted),
        designs=measured.designs,
        passed_over=dict(why.most_common()),
        notes=(*measured.notes, *_problems(store, prefix, {line.loop_id for line in proposals})),
    )
    if csv_file is not None:
        written = (*track.designs, *_ordered(store, prefix, measured.unanswered), *planned)
        write_table(csv_file, summary_csv(written), len(written))
    if as_json:
        print(json.dumps(_summary(track), indent=2))
    elif csv_file != "-":
        _show(Console(), track)


def _ordered(store: Store, prefix: str, unanswered: Sequence[lake.Unanswered]) -> Iterator[DesignSummary]:
    """The designs whose orders were placed: without them the next selection would buy these designs again."""
    if known_archive_id(store, prefix) is None:
        return
    every = Books.every(store, prefix)
    placed: dict[tuple[str, str], bool] = {}
    for campaign_id, key, design in unanswered:
        if key is None:
            continue
        order = (campaign_id, key)
        if order not in placed:
            placed[order] = any(each.order(*order).read().placed for each in every)
        if placed[order]:
            yield design


def _problems(store: Store, prefix: str, loops: set[str]) -> Iterator[str]:
    """Why rounds left designs without an outcome, by their loops' logs."""
    for loop_id in sorted(loops):
        for entry in LoopBook(store, prefix, loop_id).read().rounds:
            if entry.problem:
                yield f"loop {loop_id}, round {entry.fixed.number}: {entry.problem}"


def _summary(track: Track) -> dict[str, Any]:
    return {
        "methods": [
            {
                "method": each.method,
                "proposed": each.proposed,
                "bought": each.bought,
                "measured": each.rate.bought,
                "hits": each.rate.hits,
                "hit_rate": _finite(each.rate.rate),
                "interval": each.rate.interval() if each.rate.bought else None,
            }
            for each in track.methods
        ],
        "scores": [asdict(each) | {"rho": _finite(each.rho)} for each in track.scores],
        "designs": len(track.designs),
        "passed_over": track.passed_over,
        "notes": list(track.notes),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _show(console: Console, track: Track) -> None:
    table = Table("Method", "Proposed", "Bought", "Measured", "Hits", "Hit rate", "95 % interval")
    for each in track.methods:
        low, high = each.rate.interval()
        rate = (f"{each.rate.rate:.0%}", f"{low:.0%} to {high:.0%}") if each.rate.bought else ("", "")
        counts = (each.proposed, each.bought, each.rate.bought, each.rate.hits)
        table.add_row(Text(" ".join(each.method.split())), *(f"{count:,}" for count in counts), *rate)
    console.print(table)
    if track.scores:
        scores = Table("Score", "Rank correlation", "Designs")
        for score in track.scores:
            rho = "" if math.isnan(score.rho) else f"{score.rho:+.2f}"
            scores.add_row(Text(" ".join(score.column.split())), rho, f"{score.designs:,}")
        console.print(scores)
    lines = list(track.notes)
    if track.passed_over:
        listed = ", ".join(f"{count:,} {why.replace('_', ' ')}" for why, count in track.passed_over.items())
        lines.insert(0, f"not bought: {listed}")
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
