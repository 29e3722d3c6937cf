"""`prefect-assay server`: Prefect's server with the shipped settings, its garbage collected aside (docs/scaling.md).

On SQLite the server stands still for up to a minute otherwise, the more often the more runs work side by side. Python
collects garbage in whichever thread is at work, and in a server that is the event loop's. A database cursor among the
garbage has to wait for its connection; the connection may be waiting for SQLite, which one at a time may write to; and
who is writing waits for the event loop, until SQLite gives up after 60 s and an order or a wake-up fails.

It must not know what the server does.
"""

import gc
import sys
import threading
import time
from collections.abc import Sequence
from typing import Final

from prefect_assay.cli.server_edges import keep_home_private, show_own_address
from prefect_assay.cli.settings_files import SQLITE, settings_of

_TURN_SECONDS: Final = 0.5


def run_server(arguments: Sequence[str]) -> None:
    """The server, until it is stopped; `arguments` are those of `prefect server start`."""
    keep_home_private()
    use_shipped_settings()
    show_own_address(arguments)
    collect_aside()
    from prefect.cli import app

    sys.argv = ["prefect", "server", "start", *arguments]
    app()


def use_shipped_settings() -> None:
    """On SQLite, let what `sqlite.env` says hold wherever the user says nothing else, in whichever of Prefect's ways."""
    from prefect.settings import get_current_settings

    from prefect_assay.deployments.defaults import set_unless_chosen

    address = get_current_settings().server.database.connection_url
    if address is None or address.get_secret_value().startswith("sqlite"):
        set_unless_chosen(settings_of(SQLITE))


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
