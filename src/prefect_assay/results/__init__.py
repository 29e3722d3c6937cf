"""Results as a tidy table: typed rows, CSV and Parquet, tables for people, a ranking for the next round."""

from prefect_assay.results.row import COLUMNS, Level, Outcome, ResultRow
from prefect_assay.results.show import markdown_table, molar, rich_table
from prefect_assay.results.table import best_binders, collate, from_csv, summaries, to_csv, to_parquet
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
