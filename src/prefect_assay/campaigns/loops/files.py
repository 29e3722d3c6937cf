"""Design files in a folder or a bucket's prefix: which are complete, and which a loop has not taken yet.

A file of a folder may still grow. It is complete when it is not empty, its name is not one of an unfinished file, and
neither its size nor its time has changed for `settle` seconds. Objects of S3 appear whole. Knows no loop.
"""

import re
import shutil
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final

from prefect_assay.archive.sources import (
    Listed,
    UnreadableSource,
    list_files,
    open_source,
)
from prefect_assay.errors import InvalidSequences, ServiceUnavailable
from prefect_assay.service.bounds import cut

SUFFIXES: Final = frozenset({".fasta", ".fa", ".faa", ".csv", ".tsv", ".xlsx", ".xls", ".ods", ".parquet"})
_PACKED: Final = frozenset({".gz", ".xz", ".bz2", ".zip"})  # behind one of the others
_ID_LENGTH: Final = 60  # the longest campaign id


@dataclass(frozen=True)
class DesignFiles:
    """The design files of a source: complete ones in the order of their names, and those still being written."""

    complete: tuple[Listed, ...] = ()
    unfinished: tuple[Listed, ...] = ()

    def settles_in(self, now: float, settle: float) -> float:
        """Seconds until an unfinished file is complete, if it does not change any more."""
        return min((max(0.0, settle - (now - file.changed)) for file in self.unfinished), default=0.0)


class FileChanged(ServiceUnavailable):
    """A file changed or disappeared while it was read; look again."""


def campaign_of(loop_id: str, name: str) -> str:
    """The campaign id of a file's round, by which its orders are found; a long name is cut, and keeps its digest."""
    stem = PurePosixPath(name).stem
    return cut(f"{loop_id}-{re.sub(r'[^A-Za-z0-9._-]+', '-', stem)}", _ID_LENGTH)


def design_files(source: str, *, now: float, settle: float) -> DesignFiles:
    """Look at a folder or prefix.

    Raises:
        InvalidSequences: it does not exist or cannot be read.
        ServiceUnavailable: the object storage did not answer.
    """
    try:
        files = [file for file in list_files(source) if _is_design_file(file.name)]
    except UnreadableSource as error:
        raise InvalidSequences([f"{source}: {error.message}"]) from None
    complete = tuple(file for file in files if _is_complete(file, now, settle))
    return DesignFiles(complete, tuple(file for file in files if file not in complete))


def without_rounds(files: DesignFiles, loop_id: str, taken: Container[str]) -> DesignFiles:
    """The files that no round has; `taken` are the campaign ids of rounds.

    Raises:
        InvalidSequences: two files would be the same round.
    """
    by_campaign: dict[str, Listed] = {}
    for file in (*files.complete, *files.unfinished):
        campaign_id = campaign_of(loop_id, file.name)
        other = by_campaign.setdefault(campaign_id, file)
        if other is not file:
            raise InvalidSequences(
                [f"{file.address}: {other.name} would be the same round, {campaign_id}; rename one of them"]
            )
    new = {file for campaign_id, file in by_campaign.items() if campaign_id not in taken}
    complete, unfinished = (
        tuple(file for file in group if file in new) for group in (files.complete, files.unfinished)
    )
    return DesignFiles(complete, unfinished)


@contextmanager
def copy_listed_file(file: Listed) -> Iterator[Path]:
    """A copy of the file as it was when it was listed, deleted afterwards; FileChanged if it is another by now."""
    with TemporaryDirectory(prefix="assay-") as folder:
        path = Path(folder) / f"designs{PurePosixPath(file.name).suffix.lower()}"
        try:
            with open_source(file.address) as stream, path.open("wb") as copy:
                shutil.copyfileobj(stream, copy)
        except UnreadableSource as error:
            raise InvalidSequences([f"{file.address}: {error.message}"]) from None
        if path.stat().st_size != file.size or (not file.atomic and _has_changed(file)):
            raise FileChanged(
                f"{file.address} changed while it was read; it is read again when it is complete"
            )
        yield path


def _has_changed(file: Listed) -> bool:
    try:
        now = Path(file.address).stat()
    except OSError:
        return True
    return (now.st_size, now.st_mtime) != (file.size, file.changed)


def _is_design_file(name: str) -> bool:
    """Hidden files are unfinished; so is `x.csv.part` or any other ending behind the format's."""
    endings = [ending.lower() for ending in PurePosixPath(name).suffixes]
    if endings and endings[-1] in _PACKED:
        endings.pop()
    return not name.startswith((".", "~")) and bool(endings) and endings[-1] in SUFFIXES


def _is_complete(file: Listed, now: float, settle: float) -> bool:
    return file.size > 0 and (file.atomic or now - file.changed >= settle)
