"""Format numbers of records that are kept for years. A reader refuses a format that it does not know.

A number rises when this version would misread what the next one writes. A field that a reader may leave out raises none.
"""

import json
from typing import Final

from prefect_assay.errors import NewerFormat

MANIFEST_FORMAT: Final = 1  # of claims and manifests: `manifest_schema`
PLAN_FORMAT: Final = 1  # of the plans of campaigns: `plan_schema`
RECORD_FORMAT: Final = 1  # of the logs of orders, budgets and loops, and of the archive's id: `record_schema`
TABLE_FORMAT: Final = 1  # of the Parquet files in TABLES, in their metadata: `table_schema`

_KNOWN: Final = {
    "manifest_schema": MANIFEST_FORMAT,
    "plan_schema": PLAN_FORMAT,
    "record_schema": RECORD_FORMAT,
}


def refuse_newer(body: bytes, location: str) -> None:
    """Check the format number of a stored JSON object; anything else is left to its reader.

    Raises:
        NewerFormat: it is higher than the highest that this version reads.
    """
    try:
        value = json.loads(body)
    except ValueError:
        return
    for name, known in _KNOWN.items():
        number = value.get(name) if isinstance(value, dict) else None
        if isinstance(number, int) and number > known:
            raise NewerFormat(location, number, known)


def refuse_newer_table(metadata: dict[bytes, bytes] | None, location: str) -> None:
    """Check the format number in the metadata of a Parquet file of the tables.

    Raises:
        NewerFormat: it is higher than the highest that this version reads.
    """
    number = int((metadata or {}).get(b"table_schema", b"1"))
    if number > TABLE_FORMAT:
        raise NewerFormat(location, number, TABLE_FORMAT)


def table_metadata() -> dict[str, str]:
    """The metadata of a Parquet file of the tables."""
    return {"table_schema": str(TABLE_FORMAT)}
