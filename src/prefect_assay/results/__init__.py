"""Results as a tidy table: typed rows, their files and tables for people, and a ranking for the next round.

Knows neither Prefect nor where the tables are kept.
"""

from prefect_assay.results.formats import (
    from_csv,
    markdown_table,
    molar,
    rich_table,
    to_csv,
    to_parquet,
)
from prefect_assay.results.row import COLUMNS, Level, Outcome, ResultRow, best_binders, collate, summaries
from prefect_assay.results.tidy import rows, unread_units

__all__ = [
    "COLUMNS",
    "Level",
    "Outcome",
    "ResultRow",
    "best_binders",
    "collate",
    "from_csv",
    "markdown_table",
    "molar",
    "rich_table",
    "rows",
    "summaries",
    "to_csv",
    "to_parquet",
    "unread_units",
]
