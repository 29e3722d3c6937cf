"""The lab as one ASGI application, and its server: socket, uvicorn and signals."""

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import ASGIApp
from uvicorn.protocols.http import h11_impl

from assay_lab import api
from assay_lab.account import oauth
from assay_lab.control import actions as sim_actions
from assay_lab.control import deliveries as sim_deliveries
from assay_lab.kernel.refusals import Refusal
from assay_lab.kernel.settings import API_PREFIX, LabSettings
from assay_lab.portal import account_pages, experiment_pages
from assay_lab.service import seeding
from assay_lab.service.core import LabCore
from assay_lab.web.dispatcher import Dispatcher, make_error, make_refusal
from assay_lab.web.edge import Edge
from assay_lab.web.origin import OwnPagesOnly, lab_names
from assay_lab.web.tool_endpoint import ToolEndpoint

# A client that sends into a connection which the server is just closing gets no answer. By default httpx and uvicorn both
# close an idle one after five seconds.
KEEP_ALIVE_SECONDS: Final = 60

logger = logging.getLogger("assay_lab")


def create_app(core: LabCore) -> ASGIApp:
    """The lab's ASGI application, for programs and for pages of its own origin."""
    app = FastAPI(redirect_slashes=False, openapi_url=None)
    app.state.core = core
    _describe_app(app, core)
    app.include_router(sim_actions.router, prefix="/_sim")
    app.include_router(sim_deliveries.router, prefix="/_sim")
    app.include_router(experiment_pages.router, prefix="/portal")
    app.include_router(account_pages.router, prefix="/portal")
    _handle_errors(app, core)
    edge = Edge(Dispatcher(core, app), core)
    sign_in = oauth.SignInEndpoint(core.lab)
    app.router.routes.append(Route("/mcp", ToolEndpoint(core, edge)))
    app.router.routes.extend(Route(path, sign_in) for path in oauth.PATHS)
    names = lab_names(urlsplit(core.lab.settings.base_url).hostname or "", core.lab.settings.allowed_hosts)
    return OwnPagesOnly(edge, names)


def _describe_app(app: FastAPI, core: LabCore) -> None:
    @app.get(f"{API_PREFIX}/openapi.json")
    def openapi(request: Request) -> Response:
        partner = _is_partner(core, request.headers.get("authorization"))
        body = api.render_document(core.lab.settings.words, partner=partner)
        return Response(body, media_type="application/json")

    @app.get("/.well-known/token-key")
    def token_key() -> dict[str, str]:
        """The key that tokens are signed with, for attenuating them offline; the contract has no place for it."""
        return {"public_key": core.lab.tokens.public_key, "token_prefix": core.lab.settings.token_prefix}


def _is_partner(core: LabCore, header: str | None) -> bool:
    """Whether to describe the partner-only routes (contract 1). An invalid token counts as no token."""
    try:
        return header is not None and core.lab.tokens.authenticate(header).role == "partner"
    except Refusal:
        return False


def _handle_errors(app: FastAPI, core: LabCore) -> None:
    @app.exception_handler(Refusal)
    async def refusal(request: Request, problem: Refusal) -> Response:
        return make_refusal(core, request, problem)

    @app.exception_handler(HTTPException)
    async def not_routed(request: Request, problem: HTTPException) -> Response:
        known = problem.status_code != HTTPStatus.NOT_FOUND
        message = "method not allowed here" if known else "no such path"
        return make_error(core, request, problem.status_code, message, headers=problem.headers)

    @app.exception_handler(Exception)
    async def broken(request: Request, problem: Exception) -> Response:
        logger.error("the lab failed on %s %s", request.method, request.url.path, exc_info=problem)
        return make_error(core, request, 500, "internal server error")


try:  # where it is installed, as uvicorn also takes it
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as _Protocol
except ImportError:
    _Protocol = h11_impl.H11Protocol  # type: ignore[assignment,misc]


class _Connection(_Protocol):  # pyright: ignore[reportGeneralTypeIssues] - one of two classes
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


def run_server(
    settings: LabSettings, *, host: str, port: int, public_url: str | None, until_input_ends: bool
) -> None:
    """Serve until a signal, or until standard input closes; print one JSON line with address and tokens when ready."""
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
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )
    server = _Server(config, lambda: _announce_address(core))
    if until_input_ends:
        threading.Thread(target=_watch_input, args=(server,), daemon=True).start()
    core.start()
    try:
        server.run(sockets=[listener])
    finally:
        core.close()


def _announce_address(core: LabCore) -> None:
    settings = core.lab.settings
    line = {
        "base_url": settings.base_url,
        "token": core.seeded.member_token,
        "viewer_token": core.seeded.viewer_token,
        "partner_token": core.seeded.partner_token,
        "token_public_key": core.lab.tokens.public_key,
        "mcp_url": f"{settings.base_url}/mcp",
        "portal_url": core.sign_in_link(seeding.make_email("member")),
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
