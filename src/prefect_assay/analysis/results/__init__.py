"""Results as a tidy table: typed rows, their files and tables for people, and a ranking for the next round.

Knows neither Prefect nor where the tables are kept.
"""

from prefect_assay.analysis.results.answers import make_table
from prefect_assay.analysis.results.calls import Call, ReadCall, read_call
from prefect_assay.analysis.results.design import DesignSummary
from prefect_assay.analysis.results.formats import (
    from_csv,
    molar,
    objective_words,
    to_csv,
    to_parquet,
)
from prefect_assay.analysis.results.hits import (
    HitRate,
    Tally,
    hit_rates,
    is_hit,
    objective_value,
    tally,
)
from prefect_assay.analysis.results.matching import match
from prefect_assay.analysis.results.quantities import Quantity, Unread, read_quantity
from prefect_assay.analysis.results.ranked import markdown_table, outcome_line, rich_table
from prefect_assay.analysis.results.reading import results_in, sequence_names
from prefect_assay.analysis.results.row import (
    COLUMNS,
    Level,
    Outcome,
    ResultRow,
    collate,
    summaries,
)
from prefect_assay.analysis.results.summary import summarize
from prefect_assay.analysis.results.tables import (
    competition_csv,
    competition_replicates_csv,
    summary_csv,
    summary_parquet,
)
from prefect_assay.analysis.results.tidy import rows, unread_values

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
    "collate",
    "competition_csv",
    "competition_replicates_csv",
    "from_csv",
    "hit_rates",
    "is_hit",
    "make_table",
    "markdown_table",
    "match",
    "molar",
    "objective_value",
    "objective_words",
    "outcome_line",
    "read_call",
    "read_quantity",
    "results_in",
    "rich_table",
    "rows",
    "sequence_names",
    "summaries",
    "summarize",
    "summary_csv",
    "summary_parquet",
    "tally",
    "to_csv",
    "to_parquet",
    "unread_values",
]
