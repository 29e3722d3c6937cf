"""What `prefect-assay server` sees to around Prefect's server: who may read its home, and where its pages find it."""

import argparse
import logging
import os
import stat
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

_logger = logging.getLogger("prefect_assay.cli.services.server")
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_EVERYWHERE: Final = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - addresses that a browser cannot ask


def keep_home_private() -> None:
    """Let only this user into the Prefect home: a database there holds blocks, and the key that opens them."""
    from prefect.settings import get_current_settings

    home = get_current_settings().home
    try:
        home.mkdir(mode=stat.S_IRWXU, parents=True, exist_ok=True)
        found = home.stat()
        if not found.st_mode & _OTHERS:
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


def show_own_address(arguments: Sequence[str]) -> None:
    """Let the pages ask the server that they come from; Prefect knows its settings and not its options.

    An address that the user has chosen stays. So does PREFECT_API_URL, which the pages ask by default, unless it is
    another port of this machine.

    Args:
        arguments: the options of `prefect server start`.
    """
    from prefect.settings import get_current_settings

    from prefect_assay.client.http.address import is_loopback
    from prefect_assay.deployments.defaults import set_unless_chosen

    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for option in ("--host", "--port"):
        parser.add_argument(option, nargs="?")  # Prefect itself says what is wrong with one
    given, _ = parser.parse_known_args(arguments)
    settings = get_current_settings()
    known = settings.api.url
    if known and not (given.port and is_loopback(urlsplit(known).hostname or "")):
        return
    api = settings.server.api
    host, port = given.host or api.host, given.port or api.port
    host = "127.0.0.1" if host in _EVERYWHERE else f"[{host}]" if ":" in host else host
    set_unless_chosen({"PREFECT_SERVER_UI_API_URL": f"http://{host}:{port}{api.base_path or '/api'}"})
