"""`prefect-assay server`: Prefect's server on a PostgreSQL of its own, with the shipped settings (docs/scaling.md).

Where the user names a database, it is used. Where there can be no PostgreSQL, SQLite stays: there Python's garbage is
collected aside, because a database cursor among it makes the server stand still for up to a minute. The cursor has to
wait for its connection; the connection may be waiting for SQLite, which one at a time may write to; and who is writing
waits for the event loop, in whose thread the garbage is collected.

It must not know what the server does.
"""

import gc
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from prefect_assay.cli.services.server_edges import keep_home_private, show_own_address
from prefect_assay.errors import ConfigurationError
from prefect_assay.localstack.settings_files import EMBEDDED, SQLITE, settings_of

if TYPE_CHECKING:
    from prefect_assay.database import EmbeddedDatabase

URL: Final = "PREFECT_SERVER_DATABASE_CONNECTION_URL"
_TURN_SECONDS: Final = 0.5
_BACKGROUND: Final = frozenset({"--background", "-b"})


def run_server(arguments: Sequence[str]) -> None:
    """The server, until it is stopped; `arguments` are those of `prefect server start`.

    Raises:
        ConfigurationError: its database does not start, or it was to go into the background without one of its own.
    """
    keep_home_private()
    with server_database(arguments):
        show_own_address(arguments)
        from prefect.cli import app

        sys.argv = ["prefect", "server", "start", *arguments]
        app()


@contextmanager
def server_database(arguments: Sequence[str]) -> Iterator[None]:
    """The server's database and the settings that belong to it."""
    chosen = _chosen_database()
    if not chosen and _BACKGROUND.intersection(arguments):
        raise ConfigurationError(
            "with a database of its own the server stays in the foreground, because it stops the database when it "
            f"ends; let a service manager run it, or name a database with {URL}"
        )
    for ending in (signal.SIGTERM, signal.SIGHUP):  # else it would end without stopping the database
        signal.signal(ending, lambda number, _: sys.exit(128 + number))
    database = None if chosen else _own_database()
    if database is None:
        if not chosen or chosen.startswith("sqlite"):
            use_shipped_settings(SQLITE)
            collect_aside()
        yield
        return
    try:
        database.keep_running()
        use_shipped_settings(EMBEDDED, **{URL: database.url})
        yield
    finally:
        database.stop()


def _chosen_database() -> str:
    """The address of the database that the user has chosen, in whichever of Prefect's ways; empty for none."""
    from prefect.settings import get_current_settings

    settings = get_current_settings()
    database = settings.server.database
    if not database.model_fields_set & {"connection_url", "driver", "host", "name"}:
        return ""
    return database.connection_url.get_secret_value() if database.connection_url else "chosen by parts"


def _own_database() -> "EmbeddedDatabase | None":
    """The PostgreSQL of this Prefect home, started; None, and a line that says why, where SQLite is used.

    Raises:
        ConfigurationError: there is one, and it does not start: its runs must not be forgotten.
    """
    from prefect.settings import get_current_settings

    home = get_current_settings().home
    exists = False
    try:
        from prefect_assay.database import EmbeddedDatabase

        database = EmbeddedDatabase.of(home)
        exists = database.exists
        if not exists:
            _refuse_to_forget(home / "prefect.db")
        database.start()
    except ImportError:
        why = "PostgreSQL is not started on this kind of system"
    except ConfigurationError as error:
        if exists:
            raise
        why = str(error)
    else:
        return database
    print(
        f"prefect-assay: the server uses SQLite, because {why}. Under load SQLite refuses requests; "
        "docs/scaling.md says how to change to PostgreSQL.",
        file=sys.stderr,
        flush=True,
    )
    return None


def _refuse_to_forget(sqlite: Path) -> None:
    if sqlite.exists():
        raise ConfigurationError(f"{sqlite} holds this Prefect home's runs")


def use_shipped_settings(name: str, **more: str) -> None:
    """Let what a shipped file says hold wherever the user says nothing else, in whichever of Prefect's ways."""
    from prefect_assay.deployments.defaults import set_unless_chosen

    set_unless_chosen(settings_of(name) | more)


def collect_aside() -> None:
    """From now on, collect this process's garbage in a thread that nobody waits for."""
    gc.disable()
    threading.Thread(target=_collect, name="garbage", daemon=True).start()


def _collect() -> None:
    """As Python does by itself, but twice a second only: the oldest generation whose count is over its threshold."""
    while True:
        time.sleep(_TURN_SECONDS)
        counts = zip(gc.get_count(), gc.get_threshold(), strict=True)
        due = [generation for generation, (count, most) in enumerate(counts) if count > most]
        if due:
            gc.collect(max(due))
