"""Reading the CSV files of an archive."""

import csv
import io
from typing import Final

_FIELD_LIMIT: Final = 2**31 - 1


def csv_lines(data: bytes) -> list[list[str]]:
    """The cells of a table's lines.

    Raises:
        UnicodeDecodeError: it is not UTF-8.
        csv.Error: it is not such a table.
    """
    csv.field_size_limit(_FIELD_LIMIT)  # `extra` may hold more than the module's 128 KiB
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))
