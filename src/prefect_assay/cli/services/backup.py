"""`prefect-assay backup` and `restore`: a copy of the database that `prefect-assay server` keeps in its Prefect home.

What was ordered and paid stands in the archive's log, whatever a copy says (docs/books.md).
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from prefect_assay.errors import ConfigurationError

if TYPE_CHECKING:
    from prefect_assay.database import EmbeddedDatabase


def run_backup(file: Path) -> None:
    """Write a new file, readable by its owner alone: it holds the saved blocks and what decrypts them.

    Raises:
        ConfigurationError: the file exists, or this Prefect home has no PostgreSQL of its own.
    """
    try:
        to = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be made: {error.strerror}; name a new file") from error
    try:
        with os.fdopen(to, "wb") as copy, _started() as database:
            database.dump(copy)
    except BaseException:
        file.unlink()
        raise
    print(
        f"{file}: {file.stat().st_size:,} bytes. It holds secrets: the saved blocks, and what decrypts them."
    )


def run_restore(file: Path) -> None:
    """Replace the database by a copy; no server may use it.

    Raises:
        ConfigurationError: a server runs, the file is no copy, or this Prefect home can have no PostgreSQL.
    """
    try:
        source = file.open("rb")
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}") from error
    with source, _started(make=True) as database:
        database.load(source)
    print(
        f"{file} is restored. Start the server, and start campaigns of which it knows nothing again with the same "
        "campaign id: they find in the archive's log what was ordered and paid."
    )


@contextmanager
def _started(*, make: bool = False) -> "Iterator[EmbeddedDatabase]":
    from prefect.settings import get_current_settings

    from prefect_assay.database import EmbeddedDatabase

    home = get_current_settings().home
    database = EmbeddedDatabase.of(home)
    if not make and not database.exists:
        raise ConfigurationError(
            f"the Prefect home {home} has no PostgreSQL of its own: `prefect-assay server` makes it. Copy another "
            "database with its own tools, such as pg_dump, or sqlite3's .backup"
        )
    with database:
        yield database
