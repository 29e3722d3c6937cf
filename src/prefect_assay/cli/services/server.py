"""`prefect-assay server`: Prefect's server with its database, its shipped settings and a private Prefect home.

It must not know what the server does.
"""

import argparse
import logging
import os
import stat
import sys
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from prefect_assay.cli.services.server_database import server_database
from prefect_assay.deployments.settings_files import set_defaults

_logger = logging.getLogger(__name__)
_GROUP_AND_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_ALL_INTERFACES: Final = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - no browser can open these


def run_server(arguments: Sequence[str]) -> None:
    """Run the server until it is stopped; `arguments` are those of `prefect server start`.

    Raises:
        ConfigurationError: its database does not start, or `--background` was given without a database of the user.
    """
    keep_home_private()
    with server_database(arguments):
        set_ui_api_url(arguments)
        from prefect.cli import app

        sys.argv = ["prefect", "server", "start", *arguments]
        app()


def keep_home_private() -> None:
    """Let only this user into the Prefect home: a database there holds blocks and the key that decrypts them."""
    from prefect.settings import get_current_settings

    home = get_current_settings().home
    try:
        home.mkdir(mode=stat.S_IRWXU, parents=True, exist_ok=True)
        found = home.stat()
        if not found.st_mode & _GROUP_AND_OTHERS:
            return
        # A sticky folder, such as /tmp, is shared on purpose, by more than Prefect.
        if found.st_uid == os.geteuid() and not found.st_mode & stat.S_ISVTX:
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


def set_ui_api_url(arguments: Sequence[str]) -> None:
    """Let the UI call the server that it comes from: Prefect derives the address from settings, not from options.

    An address that the user has configured stays. So does PREFECT_API_URL, the UI's default, unless it is another port
    of this machine.
    """
    from prefect.settings import get_current_settings

    from prefect_assay.client.http.address import is_loopback

    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for option in ("--host", "--port"):
        parser.add_argument(option, nargs="?")  # Prefect reports a missing or wrong value
    given, _ = parser.parse_known_args(arguments)
    settings = get_current_settings()
    known = settings.api.url
    if known and not (given.port and is_loopback(urlsplit(known).hostname or "")):
        return
    api = settings.server.api
    host, port = given.host or api.host, given.port or api.port
    host = "127.0.0.1" if host in _ALL_INTERFACES else f"[{host}]" if ":" in host else host
    set_defaults({"PREFECT_SERVER_UI_API_URL": f"http://{host}:{port}{api.base_path or '/api'}"})
