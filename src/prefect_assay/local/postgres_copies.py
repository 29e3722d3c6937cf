"""Copies of an `EmbeddedDatabase`: made while it is in use, put back whole while nothing else uses it."""

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from prefect_assay.errors import ConfigurationError
from prefect_assay.local.postgres import NAME, EmbeddedDatabase

_PREFIX: Final = "backup-"
_HEAD_BYTES: Final = 500
_VERSION: Final = re.compile(rb"\APGDMP.*?\x00(\d\d)\.\d", re.DOTALL)
# What a newer Prefect has added also goes. The owner and the right are those of a new database.
_EMPTY: Final = (
    "DROP SCHEMA public CASCADE; CREATE SCHEMA public AUTHORIZATION pg_database_owner; "
    "GRANT USAGE ON SCHEMA public TO PUBLIC"
)


def dump_database(database: EmbeddedDatabase, to: IO[bytes]) -> None:
    """Write a copy of its contents in the custom format of `pg_dump`, also while it is in use."""
    with _work_folder(database) as folder:
        made = folder / "copy"
        copy = database.client("pg_dump", "--format=custom", f"--file={made}", NAME)
        database.must(copy, "could not be copied", seconds=None)
        with made.open("rb") as source:
            shutil.copyfileobj(source, to)


def load_database(database: EmbeddedDatabase, source: IO[bytes]) -> None:
    """Replace its contents by a copy from `dump`, all or nothing; ConfigurationError while a server uses it."""
    needed, there = version_of(source), database.version
    if needed > there:
        raise ConfigurationError(
            f"the copy is of PostgreSQL {needed}, and the database in {database.place.folder} of {there}, which cannot read "
            "it. Restore the copy into a new Prefect home (PREFECT_HOME); where the system has no such PostgreSQL, install "
            "its programs for this package in a checkout with: pip install '.[server]'"
        )
    with _work_folder(database) as folder:
        copy, script = folder / "copy", folder / "script"
        with copy.open("wb") as to:
            shutil.copyfileobj(source, to)
        database.place.give(copy)
        read = [database.programs["pg_restore"], "--no-owner", f"--file={script}", str(copy)]
        replace = database.client(
            "psql", "-q", "-X", "-1", "-v", "ON_ERROR_STOP=1", "-o", os.devnull, "-d", NAME
        )
        replace += ["-c", _EMPTY, "-f", str(script)]
        with database.exclusive():
            database.must(read, "was not replaced", seconds=None)
            database.must(replace, "was not replaced", seconds=None)


def version_of(source: IO[bytes]) -> int:
    """The major version of the PostgreSQL that a copy was made of; 0 for what is not a copy. `source` stays at its beginning."""
    match = _VERSION.match(source.read(_HEAD_BYTES))
    source.seek(0)
    return int(match[1]) if match else 0


@contextmanager
def _work_folder(database: EmbeddedDatabase) -> Iterator[Path]:
    """A folder of this process for the database's programs; those of killed processes are deleted."""
    with database.lock_start_and_stop():
        for old in database.place.folder.glob(f"{_PREFIX}*"):
            _delete_abandoned_folder(old)
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=database.place.folder))
        database.place.give(folder)
        lock = os.open(folder, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
        os.close(lock)


def _delete_abandoned_folder(old: Path) -> None:
    """Delete a work folder that a process has left; one whose process lives is locked, and stays."""
    lock = os.open(old, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(old)
    except BlockingIOError:
        return
    finally:
        os.close(lock)
