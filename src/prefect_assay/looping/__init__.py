"""Loops: the log of rounds in the archive, stop rules, design files and designers. Knows neither orders nor the wire."""

from prefect_assay.designs.selection import objective_of
from prefect_assay.looping.book import (
    LoopBook,
    LoopState,
    Round,
    RoundEnded,
    RoundFailed,
    RoundFixed,
    designs_address,
    of_designs_address,
)
from prefect_assay.looping.check import check_loops
from prefect_assay.looping.choosing import NothingToMeasure, OverBudget
from prefect_assay.looping.history import loop_history, summary_of, with_newest_tables
from prefect_assay.looping.loop import Loop, Waiting
from prefect_assay.looping.proposals import UnreadableDesigns, next_round
from prefect_assay.looping.report import loop_report, round_line
from prefect_assay.looping.rules import (
    RoundValue,
    Stop,
    StopRules,
    best_of,
    shown,
    stop_reason,
)

__all__ = [
    "Loop",
    "LoopBook",
    "LoopState",
    "NothingToMeasure",
    "OverBudget",
    "Round",
    "RoundEnded",
    "RoundFailed",
    "RoundFixed",
    "RoundValue",
    "Stop",
    "StopRules",
    "UnreadableDesigns",
    "Waiting",
    "best_of",
    "check_loops",
    "designs_address",
    "loop_history",
    "loop_report",
    "next_round",
    "objective_of",
    "of_designs_address",
    "round_line",
    "shown",
    "stop_reason",
    "summary_of",
    "with_newest_tables",
]
