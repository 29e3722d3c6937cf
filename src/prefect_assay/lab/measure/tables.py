"""Plain CSV texts, and the zip they travel in.

The published data sets write UTF-8 with a byte order mark, quoted text and the string null; so does this.
"""

import csv
import io
import zipfile
from collections.abc import Iterable, Sequence
from typing import Any, Final

from prefect_assay.lab.measure.names import safe_name
from prefect_assay.lab.measure.request import Request

BOM: Final = "\ufeff"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_COMPRESSION_LEVEL = 1

File = tuple[str, str]
"""Path in the zip, and text."""


def pack(files: Iterable[File]) -> bytes:
    """Text files to a zip with fixed dates, so that equal content gives equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=_COMPRESSION_LEVEL) as archive:
        for path, text in files:
            info = zipfile.ZipInfo(path, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, text.encode("utf-8"))
    return buffer.getvalue()


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A CSV text: text quoted, numbers bare, None as the string null."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(["null" if cell is None else cell for cell in row] for row in rows)
    return out.getvalue()


def summary_file(request: Request, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> File:
    """The package's table: UTF-8 with a byte order mark."""
    return f"{safe_name(request.experiment_id)}_summary.csv", BOM + table(header, rows)
