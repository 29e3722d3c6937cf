"""Reads a data package that need not be trusted: a zip with bounds, and tables as rows.

Knows files and CSV, no kinetics.
"""

import csv
import io
import re
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO, Final, Self

import numpy as np

from prefect_assay.analysis.kinetics.curves import FloatArray
from prefect_assay.errors import InputError

MEMBERS_MAX: Final = 50_000
MEMBER_BYTES_MAX: Final = 32 * 2**20
TOTAL_BYTES_MAX: Final = 2**30
_COLUMNS: Final = 2
_EMPTY: Final = re.compile(r"(?<=,)(?:null)?$", re.MULTILINE)


class PackageFiles:
    """The members of a zip. Reading is counted: no more than `TOTAL_BYTES_MAX` are decoded."""

    def __init__(self, source: Path | bytes | BinaryIO) -> None:
        self._name = str(source) if isinstance(source, Path) else "the file"
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source)
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            raise InputError(
                f"{self._name} cannot be read as a data package of the service, which is a zip with "
                f"raw_data/<design>_<replicate>_<nM>.csv: {error}; give the zip of a result, or download it again"
            ) from None
        members = [member for member in self._zip.infolist() if not member.is_dir()]
        if len(members) > MEMBERS_MAX:
            self._zip.close()
            raise InputError(
                f"{self._name} has {len(members)} files, over the limit of {MEMBERS_MAX}; check its source"
            )
        self._members = {member.filename.replace("\\", "/"): member for member in members}
        self._left = TOTAL_BYTES_MAX

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    @property
    def paths(self) -> tuple[str, ...]:
        """All paths, sorted."""
        return tuple(sorted(self._members))

    def read(self, path: str) -> str:
        """The text of one file. UnreadableFile if it is damaged, encrypted or too large."""
        limit = min(MEMBER_BYTES_MAX, self._left)
        try:
            with self._zip.open(self._members[path]) as member:
                data = member.read(limit + 1)
        except (
            OSError,
            EOFError,
            RuntimeError,
            NotImplementedError,
            ValueError,
            zipfile.BadZipFile,
            zlib.error,
        ) as error:
            raise UnreadableFile(f"{path} cannot be read: {error}") from None
        self._left = max(0, self._left - len(data))
        if len(data) > limit:
            raise UnreadableFile(f"{path} is larger than the limit of {limit} bytes; it was not read")
        return data.decode("utf-8-sig", "replace")


class UnreadableFile(Exception):
    """One file of a package cannot be used; the others can."""


def table(text: str) -> list[dict[str, str]]:
    """The rows of a CSV with a header; the string `null` and missing cells are empty."""
    try:
        rows = list(csv.DictReader(io.StringIO(text)))
    except csv.Error as error:
        raise UnreadableFile(f"not a table: {error}") from None
    return [
        {key: "" if value in {None, "null"} else str(value) for key, value in row.items() if key is not None}
        for row in rows
    ]


def columns(text: str) -> tuple[tuple[str, str], FloatArray, FloatArray]:
    """The names of two columns and their finite rows by ascending first column; UnreadableFile for anything else."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise UnreadableFile("is empty")
    head, _, body = text.partition("\n")
    names = tuple(name.strip().strip('"') for name in head.split(","))
    if len(names) != _COLUMNS:
        raise UnreadableFile(f"has {len(names)} columns instead of {_COLUMNS}")
    if not body.strip():
        raise UnreadableFile("has no rows")
    try:
        values = np.loadtxt(io.StringIO(_EMPTY.sub("nan", body)), delimiter=",", ndmin=2, quotechar='"')
    except ValueError as error:
        raise UnreadableFile(f"is not numeric: {error}") from None
    if values.shape[1] != _COLUMNS:
        raise UnreadableFile(f"has rows of {values.shape[1]} columns instead of {_COLUMNS}")
    values = values[np.isfinite(values).all(axis=1)]
    if not len(values):
        raise UnreadableFile("has no finite rows")
    values = values[np.argsort(values[:, 0], kind="stable")]
    distinct = np.concatenate([[True], np.diff(values[:, 0]) > 0])
    return (names[0], names[1]), values[distinct, 0], values[distinct, 1]
