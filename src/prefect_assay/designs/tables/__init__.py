"""Reading files of text and tables: encodings, compression, workbooks, Parquet, delimiters, decimal commas.

Designs, histories and landscapes are read through this package. It knows nothing of what the columns mean, of paths or of S3.
"""

from prefect_assay.designs.tables.content import Content, Sheet, read_content
from prefect_assay.designs.tables.errors import NoHeader, UnreadableFile
from prefect_assay.designs.tables.table import (
    Row,
    Table,
    key_of,
    read_table,
    sheet_table,
    text_table,
)

__all__ = [
    "Content",
    "NoHeader",
    "Row",
    "Sheet",
    "Table",
    "UnreadableFile",
    "key_of",
    "read_content",
    "read_table",
    "sheet_table",
    "text_table",
]
