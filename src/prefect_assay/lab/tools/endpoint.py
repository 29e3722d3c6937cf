"""/mcp: a gate in front of the tool server, which is made when the first tool client comes.

Importing the protocol takes longer than starting the whole lab, and works only with the extra `lab`; without it
the endpoint answers 501 and everything else works. Knows nothing of tools.
"""

import asyncio
import logging
import secrets
from typing import Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from prefect_assay.lab.account import oauth_endpoint
from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.service.api import App, Receive, Scope, Send
from prefect_assay.lab.service.core import LabCore

INSTALL: Final = "the tool endpoint needs mcp: pip install 'prefect-assay[lab]'"

logger = logging.getLogger("prefect_assay.lab")


class ToolEndpoint:
    """ASGI application: only requests with a living token pass on to the tool server."""

    def __init__(self, core: LabCore, edge: App) -> None:
        self._core = core
        self._server = _InBackground(lambda: _make(core, edge))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI entry point."""
        try:
            server = await self._server.running()
        except ImportError:
            logger.exception("no tool endpoint")
            await _refused(501, INSTALL)(scope, receive, send)
            return
        header = next(
            (value.decode("latin-1") for name, value in scope["headers"] if name == b"authorization"), None
        )
        try:
            await run_in_threadpool(self._core.lab.tokens.authenticate, header)
        except Refusal as refusal:
            challenge = {"www-authenticate": self._challenge(header)}
            await _refused(refusal.status, refusal.message, challenge)(scope, receive, send)
            return
        if scope["method"] != "POST":  # no session, so there is nothing to listen to and nothing to end
            await _refused(405, "the tool endpoint takes POST", {"allow": "POST"})(scope, receive, send)
            return
        await server(scope, receive, send)

    def _challenge(self, header: str | None) -> str:
        """Where a client learns how to sign in (RFC 9728)."""
        base_url = self._core.lab.settings.base_url
        parts = ['error="invalid_token"'] if header else []
        if oauth_endpoint.offered(base_url):
            parts.append(f'resource_metadata="{base_url}{oauth_endpoint.METADATA}/mcp"')
        return f"Bearer {', '.join(parts)}".rstrip()


def _make(core: LabCore, edge: App) -> Starlette:
    from prefect_assay.lab.tools import server as tools_server  # noqa: PLC0415 - an extra, and slow

    return tools_server.create(core, edge)


class _InBackground:
    """An application whose lifespan runs in a task of its own, as long as the event loop does.

    The lab serves without the lifespan protocol; and the server's task group must end in the task that began it.
    """

    def __init__(self, make: Any) -> None:
        self._make = make
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Starlette] | None = None

    async def running(self) -> Starlette:
        """The application, started; ImportError where its libraries are missing."""
        loop = asyncio.get_running_loop()
        if (
            self._ready is None
            or self._task is None
            or self._task.done()
            or self._task.get_loop() is not loop
        ):
            self._ready = loop.create_future()
            self._task = loop.create_task(self._run(self._ready))
        return await asyncio.shield(self._ready)

    async def _run(self, ready: "asyncio.Future[Starlette]") -> None:
        try:
            app = await run_in_threadpool(self._make)
            async with app.router.lifespan_context(app):
                ready.set_result(app)
                await asyncio.Event().wait()
        except Exception as error:  # noqa: BLE001 - whoever waits for it gets it
            if not ready.done():
                ready.set_exception(error)


def _refused(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    """The error body of contract 2.12."""
    request_id = f"req_{secrets.token_hex(12)}"
    return JSONResponse(
        {"error": message, "request_id": request_id},
        status,
        headers={"x-request-id": request_id} | (headers or {}),
    )
