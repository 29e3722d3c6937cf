"""`prefect-assay server`, `backup` and `restore`: Prefect's server on its database, with its shipped settings.

A database that the user names is used. Otherwise the server gets a PostgreSQL of its own, or SQLite where PostgreSQL
cannot run (docs/operating.md). This module must not know what the server does.
"""

import logging
import os
import signal
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from prefect_assay.cli.prefect_api import check_client_variables, refuse_unusable_auth
from prefect_assay.cli.services.password import protect_api
from prefect_assay.cli.services.receiver_address import refuse_taken_port
from prefect_assay.deployments.settings_files import (
    ANALYTICS,
    EMBEDDED,
    SQLITE,
    read_shipped_settings,
    set_defaults,
)
from prefect_assay.errors import ConfigurationError
from prefect_assay.service.web_origin import OwnPagesOnly, own_names

if TYPE_CHECKING:
    from prefect_assay.local.postgres import EmbeddedDatabase

URL: Final = "PREFECT_SERVER_DATABASE_CONNECTION_URL"
_logger = logging.getLogger(__name__)
_NOT_STARTED: Final = 3  # the exit code of uvicorn
_GROUP_AND_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_UI_API_URL: Final = "PREFECT_SERVER_UI_API_URL"
_LEASES: Final = "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE"
_CORS_ORIGINS: Final = "PREFECT_SERVER_CORS_ALLOWED_ORIGINS"


@dataclass(frozen=True)
class ServerOptions:
    """Where the server listens, its names in addition to those of the loopback, and whether it also runs the background services.

    Without a host or a port it is Prefect's setting.
    """

    host: str | None = None
    port: int | None = None
    allow_hosts: tuple[str, ...] = ()
    services: bool = True


def run_server(options: ServerOptions, *, ask_password: bool = False) -> None:
    """Run the server until it is stopped, with `ask_password` behind a password.

    Raises:
        InputError: an option is wrong; nothing was started.
        ConfigurationError: the port is taken, or the database does not start.
    """
    from prefect.settings import get_current_settings

    check_client_variables()
    api = get_current_settings().server.api
    refuse_unusable_auth("PREFECT_SERVER_API_AUTH_STRING", api.auth_string)
    host, port = options.host or api.host, options.port or api.port
    names = own_names(host, options.allow_hosts)
    refuse_taken_port(host, port)
    keep_home_private()
    if ask_password:
        protect_api()
    set_defaults(
        {
            # With any database; several servers that share one have others (postgres.env).
            **{name: read_shipped_settings(EMBEDDED)[name] for name in (ANALYTICS, _LEASES)},
            # Relative: the UI asks the address that its page came from.
            _UI_API_URL: api.base_path or "/api",
            # By default Prefect lets every page read its answers; a browser may keep such an answer for other pages.
            _CORS_ORIGINS: ",".join(f"http://{name}:{port}" for name in ("localhost", "127.0.0.1", "[::1]")),
        }
    )
    with server_database():
        _serve_prefect(names, host, port, options)


def _serve_prefect(names: frozenset[str], host: str, port: int, options: ServerOptions) -> None:
    """Serve as `prefect server start` does, which cannot be given another application."""
    import uvicorn
    from prefect.server.api.server import create_app
    from prefect.settings import get_current_settings
    from pydantic import SecretStr

    from prefect_assay.deployments.sweep_slot import watch_slot

    server = get_current_settings().server
    app = create_app(final=True, webserver_only=not options.services)
    shown = f"[{host}]" if ":" in host else host
    auth = server.api.auth_string
    reached = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(shown, shown)  # noqa: S104 - compared only
    secret = auth.get_secret_value() if isinstance(auth, SecretStr) else auth
    # Also without services: those of Prefect's own command do not look, and to free a slot twice does no harm.
    watch_slot(f"http://{reached}:{port}{server.api.base_path or '/api'}", secret)

    class AnnouncedServer(uvicorn.Server):
        """Prints the address once it answers: the application may migrate its database first."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                print(f"Prefect's user interface: http://{shown}:{port}", file=sys.stderr, flush=True)

    announced = AnnouncedServer(
        uvicorn.Config(
            OwnPagesOnly(app, names),
            host=host,
            port=port,
            timeout_keep_alive=server.api.keepalive_timeout,
            ws_ping_interval=server.api.websocket_ping_interval,
            ws_ping_timeout=server.api.websocket_ping_timeout,
            log_level=server.logging_level.lower(),
        )
    )
    with suppress(KeyboardInterrupt):  # as uvicorn.run does
        announced.run()
    if not announced.started:
        sys.exit(_NOT_STARTED)


def keep_home_private() -> None:
    """Let only this user into the Prefect home: a database there holds blocks and the key that decrypts them."""
    from prefect.settings import get_current_settings

    home = get_current_settings().home
    try:
        home.mkdir(mode=stat.S_IRWXU, parents=True, exist_ok=True)
        home_stat = home.stat()
        if not home_stat.st_mode & _GROUP_AND_OTHERS:
            return
        # A sticky folder, such as /tmp, is shared on purpose, by more than Prefect.
        if home_stat.st_uid == os.geteuid() and not home_stat.st_mode & stat.S_ISVTX:
            home.chmod(stat.S_IRWXU)
            _logger.warning("The Prefect home %s was open to other users; its mode is 0700 now", home)
            return
    except OSError as error:
        _logger.warning("The Prefect home %s cannot be kept from other users: %s", home, error)
        return
    _logger.warning(
        "Other users can enter the Prefect home %s, which holds secrets; set PREFECT_HOME to a folder of this user alone",
        home,
    )


@contextmanager
def server_database() -> Iterator[None]:
    """Start the server's database, and set the settings that belong to it.

    Raises:
        ConfigurationError: it does not start.
    """
    configured = _configured_database()
    _end_by_exit()
    database = None if configured else _embedded_database()
    if database is None:
        if not configured or configured.startswith("sqlite"):
            set_defaults(read_shipped_settings(SQLITE))
        yield
        return
    try:
        database.keep_running()
        set_defaults({**read_shipped_settings(EMBEDDED), URL: database.url})
        yield
    finally:
        database.stop()


def _end_by_exit() -> None:
    """Let a signal raise SystemExit: else the process would end without stopping the database."""
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda number, _: sys.exit(128 + number))


def run_backup(file: Path) -> None:
    """Write a new file, readable by its owner alone: it holds the saved blocks and what decrypts them."""
    from prefect_assay.local.postgres_copies import dump_database

    _end_by_exit()
    try:
        to = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be made: {error.strerror}; name a new file") from error
    try:
        with os.fdopen(to, "wb") as copy, _start_database() as database:
            dump_database(database, copy)
    except BaseException:
        file.unlink()
        raise
    print(
        f"{file}: {file.stat().st_size:,} bytes. It holds secrets: the saved blocks, and what decrypts them."
    )


def run_restore(file: Path) -> None:
    """Replace the database by a copy; a `ConfigurationError` while a server uses it."""
    from prefect_assay.local.postgres_copies import load_database, version_of

    _end_by_exit()
    try:
        source = file.open("rb")
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}") from error
    with source, _start_database(copy_version=version_of(source)) as database:
        load_database(database, source)
    print(
        f"{file} is restored. Start the server, and start campaigns of which it knows nothing again with the same "
        "campaign id: they find in the archive's log what was ordered and paid."
    )


def _configured_database() -> str:
    """The address of the database that the user has configured in Prefect; empty without one."""
    from prefect.settings import get_current_settings

    database = get_current_settings().server.database
    if not database.model_fields_set & {"connection_url", "driver", "host", "name"}:
        return ""
    return database.connection_url.get_secret_value() if database.connection_url else "configured in parts"


def _embedded_database() -> "EmbeddedDatabase | None":
    """The PostgreSQL of this Prefect home, started; None, after a line with the reason, where SQLite is used.

    Raises:
        ConfigurationError: it exists and does not start: falling back to SQLite would lose its runs.
    """
    from prefect.settings import get_current_settings

    home = get_current_settings().home
    exists = False
    try:
        from prefect_assay.local.postgres import EmbeddedDatabase

        database = EmbeddedDatabase.of(home)
        exists = database.exists
        if not exists:
            _refuse_to_replace(home / "prefect.db")
        database.start()
    except ImportError:
        reason = "PostgreSQL is not started on this kind of system"
    except ConfigurationError as error:
        if exists:
            raise
        reason = str(error)
    else:
        return database
    print(
        f"prefect-assay: the server uses SQLite, because {reason}. Under load SQLite refuses requests; "
        "docs/operating.md says how to change to PostgreSQL.",
        file=sys.stderr,
        flush=True,
    )
    return None


def _refuse_to_replace(sqlite: Path) -> None:
    if sqlite.exists():
        raise ConfigurationError(f"{sqlite} holds this Prefect home's runs")


@contextmanager
def _start_database(*, copy_version: int | None = None) -> "Iterator[EmbeddedDatabase]":
    """The database of this Prefect home; it is made for a copy, by programs that can read it."""
    from prefect.settings import get_current_settings

    from prefect_assay.local.postgres import EmbeddedDatabase

    if _configured_database():
        raise ConfigurationError(
            f"Prefect is configured to use another database than the one of its home ({URL}, or its parts): copy that one "
            "with its own tools, such as pg_dump, or remove the setting"
        )
    home = get_current_settings().home
    database = EmbeddedDatabase.of(home)
    new = not database.exists
    if new and copy_version is None:
        raise ConfigurationError(
            f"the Prefect home {home} has no PostgreSQL of its own: `prefect-assay server` makes it. Copy another "
            "database with its own tools, such as pg_dump, or sqlite3's .backup"
        )
    sqlite = home / "prefect.db"
    if new and sqlite.exists():
        raise ConfigurationError(
            f"{sqlite} holds this Prefect home's runs, which no server would use after this; move it away first, or set "
            "PREFECT_HOME to another folder (docs/operating.md, From SQLite to PostgreSQL)"
        )
    database.oldest = max(database.oldest, copy_version or 0)
    try:
        with database:
            yield database
    except BaseException:
        if new and database.exists:
            database.forget()
        raise
