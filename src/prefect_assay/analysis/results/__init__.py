"""Results as a tidy table: typed rows, their files and tables for people, and a ranking for the next round.

Knows neither Prefect nor where the tables are kept.
"""

from prefect_assay.analysis.results.answers import make_table
from prefect_assay.analysis.results.design import DesignSummary
from prefect_assay.analysis.results.formats import format_objective, from_csv, to_csv
from prefect_assay.analysis.results.hits import (
    HitRate,
    count_hit_rates,
    count_hits,
    get_objective_value,
    is_hit,
)
from prefect_assay.analysis.results.ranked import describe_outcomes, make_markdown_table, make_rich_table
from prefect_assay.analysis.results.reading import read_results
from prefect_assay.analysis.results.row import COLUMNS, Level, Outcome, ResultRow, collate_rows
from prefect_assay.analysis.results.summary import summarize
from prefect_assay.analysis.results.tables import write_summary_csv

__all__ = [
    "COLUMNS",
    "DesignSummary",
    "HitRate",
    "Level",
    "Outcome",
    "ResultRow",
    "collate_rows",
    "count_hit_rates",
    "count_hits",
    "describe_outcomes",
    "format_objective",
    "from_csv",
    "get_objective_value",
    "is_hit",
    "make_markdown_table",
    "make_rich_table",
    "make_table",
    "read_results",
    "summarize",
    "to_csv",
    "write_summary_csv",
]
