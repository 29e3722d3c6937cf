"""Results as a tidy table: typed rows, their files and tables for people, and a ranking for the next round.

Knows neither Prefect nor where the tables are kept.
"""

from prefect_assay.analysis.results.answers import make_table
from prefect_assay.analysis.results.calls import Call, ReadCall, read_call
from prefect_assay.analysis.results.design import DesignSummary
from prefect_assay.analysis.results.formats import (
    format_molar,
    format_objective,
    from_csv,
    to_csv,
)
from prefect_assay.analysis.results.hits import (
    HitRate,
    Tally,
    count_hit_rates,
    count_hits,
    get_objective_value,
    is_hit,
)
from prefect_assay.analysis.results.matching import match_results
from prefect_assay.analysis.results.quantities import Quantity, Unread, read_quantity
from prefect_assay.analysis.results.ranked import describe_outcomes, make_markdown_table, make_rich_table
from prefect_assay.analysis.results.reading import read_results, read_sequence_names
from prefect_assay.analysis.results.row import (
    COLUMNS,
    Level,
    Outcome,
    ResultRow,
    collate_rows,
)
from prefect_assay.analysis.results.summary import summarize
from prefect_assay.analysis.results.tables import encode_summary_parquet, write_summary_csv
from prefect_assay.analysis.results.tidy import list_unread_values, read_rows

__all__ = [
    "COLUMNS",
    "Call",
    "DesignSummary",
    "HitRate",
    "Level",
    "Outcome",
    "Quantity",
    "ReadCall",
    "ResultRow",
    "Tally",
    "Unread",
    "collate_rows",
    "count_hit_rates",
    "count_hits",
    "describe_outcomes",
    "encode_summary_parquet",
    "format_molar",
    "format_objective",
    "from_csv",
    "get_objective_value",
    "is_hit",
    "list_unread_values",
    "make_markdown_table",
    "make_rich_table",
    "make_table",
    "match_results",
    "read_call",
    "read_quantity",
    "read_results",
    "read_rows",
    "read_sequence_names",
    "summarize",
    "to_csv",
    "write_summary_csv",
]
