"""Files of a data package: safe names, CSV like the published data (BOM, quoted text, `null`), and the zip."""

import csv
import hashlib
import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

LENGTH_MAX: Final = 100
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
BOM: Final = "\ufeff"
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_COMPRESSION_LEVEL = 1

File = tuple[str, str]
"""Path in the zip, and text."""


def safe_name(name: str) -> str:
    """One name, without looking at the others."""
    safe = _UNSAFE.sub("_", name)
    safe = "_" + safe[1:] if safe.startswith(".") else safe or "_"
    return safe if len(safe) <= LENGTH_MAX else f"{safe[: LENGTH_MAX - 9]}-{_digest_name(name)}"


def safe_names(names: Sequence[str]) -> tuple[str, ...]:
    """A file name for each name, in order; no two are the same, upper and lower case included."""
    file_names = [safe_name(name) for name in names]
    count = Counter(safe.casefold() for safe in file_names)
    used: set[str] = set()
    result = []
    for name, safe in zip(names, file_names, strict=True):
        stem = safe if count[safe.casefold()] == 1 else f"{safe[: LENGTH_MAX - 9]}-{_digest_name(name)}"
        unique, again = stem, 1
        while unique.casefold() in used:  # two designs with the very same name
            again += 1
            unique = f"{stem}-{again}"
        used.add(unique.casefold())
        result.append(unique)
    return tuple(result)


def _digest_name(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def pack_files(files: Iterable[File]) -> bytes:
    """Text files to a zip with fixed dates, so that equal content gives equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=_COMPRESSION_LEVEL) as archive:
        for path, text in files:
            info = zipfile.ZipInfo(path, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, text.encode("utf-8"))
    return buffer.getvalue()


def format_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A CSV text: text quoted, numbers bare, None as the string null."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(["null" if cell is None else cell for cell in row] for row in rows)
    return out.getvalue()


def summary_file(experiment_id: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> File:
    """The package's table, with a byte order mark."""
    return f"{safe_name(experiment_id)}_summary.csv", BOM + format_table(header, rows)
