"""Serves a lab over HTTP: socket, uvicorn and signals."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from prefect_assay.lab.kernel.settings import LabSettings
from prefect_assay.lab.service import seeding
from prefect_assay.lab.service.core import LabCore
from prefect_assay.lab.web.app import create_app


class _Connection(H11Protocol):
    """uvicorn's HTTP protocol; puts itself into the request's state, because faults close connections."""

    def __init__(self, config: Any, server_state: Any, app_state: dict[str, Any], _loop: Any = None) -> None:
        super().__init__(config, server_state, {**app_state, "connection": self}, _loop)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        # asyncio sets it only on sockets that it opened itself; without it every answer takes 40 ms longer.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)


class _Server(uvicorn.Server):
    """A uvicorn server that exits with 0 on SIGTERM and SIGINT, and calls `ready` when it serves."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle the signals without raising them again at the end, as uvicorn does."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.end)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    def end(self) -> None:
        """Finish the running requests and stop."""
        self.should_exit = True


def run(
    settings: LabSettings, *, host: str, port: int, public_url: str | None, until_input_ends: bool
) -> None:
    """Serve until a signal; print one JSON line with address and tokens when ready.

    `public_url` is for links, where it differs from host and port. `until_input_ends` also stops when standard input
    closes, so that a test's lab ends with the test.
    """
    listener = socket.create_server((host, port))
    base_url = public_url or f"http://{host}:{listener.getsockname()[1]}"
    core = LabCore(replace(settings, base_url=base_url.rstrip("/")))
    config = uvicorn.Config(
        create_app(core),
        http=_Connection,
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=3,
    )
    server = _Server(config, lambda: _announce(core))
    if until_input_ends:
        threading.Thread(target=_watch_input, args=(server,), daemon=True).start()
    core.start()
    try:
        server.run(sockets=[listener])
    finally:
        core.close()


def _announce(core: LabCore) -> None:
    settings = core.lab.settings
    line = {
        "base_url": settings.base_url,
        "token": core.seeded.member_token,
        "viewer_token": core.seeded.viewer_token,
        "partner_token": core.seeded.partner_token,
        "token_public_key": core.lab.tokens.public_key,
        "mcp_url": f"{settings.base_url}/mcp",
        "portal_url": core.sign_in_link(seeding.email("member")),
        "sim_token": settings.sim_token,
        "organization_id": core.seeded.organization_id,
    }
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _watch_input(server: _Server) -> None:
    # Unbuffered: a thread that waits in sys.stdin would break the interpreter's own end.
    while os.read(sys.stdin.fileno(), 4096):
        pass
    server.end()
