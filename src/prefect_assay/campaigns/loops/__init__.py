"""Loops: the log of rounds in the archive, stop rules, design files and designers. Knows neither orders nor the wire."""

from prefect_assay.campaigns.loops.check import check_loops
from prefect_assay.campaigns.loops.choosing import NothingToMeasure, OverBudget
from prefect_assay.campaigns.loops.history import loop_history, summary_of, with_newest_tables
from prefect_assay.campaigns.loops.loop import Loop, Waiting
from prefect_assay.campaigns.loops.loop_log import (
    LoopLog,
    LoopState,
    Round,
    RoundEnded,
    RoundFailed,
    RoundFixed,
    designs_address,
    of_designs_address,
)
from prefect_assay.campaigns.loops.proposals import MeasuredFile, UnreadableDesigns, next_round
from prefect_assay.campaigns.loops.report import loop_report, round_line
from prefect_assay.campaigns.loops.rules import (
    RoundValue,
    Stop,
    StopRules,
    best_of,
    format_value,
    stop_reason,
)

__all__ = [
    "Loop",
    "LoopLog",
    "LoopState",
    "MeasuredFile",
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
    "format_value",
    "loop_history",
    "loop_report",
    "next_round",
    "of_designs_address",
    "round_line",
    "stop_reason",
    "summary_of",
    "with_newest_tables",
]
