"""/mcp: checks the token, and starts the tool server with the first call: `mcp` is optional, and slow to import."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from assay_lab.account import oauth
from assay_lab.kernel.refusals import Refusal
from assay_lab.service.core import LabCore
from assay_lab.web.dispatcher import make_error

INSTALL: Final = "the tool endpoint needs mcp: pip install mcp"

logger = logging.getLogger("assay_lab")


class ToolEndpoint:
    """ASGI application: only requests with a valid token pass on to the tool server."""

    def __init__(self, core: LabCore, edge: ASGIApp) -> None:
        self._core = core
        self._server = _InBackground(lambda: _make_endpoint(core, edge))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI entry point."""
        request = Request(scope, receive)
        header = request.headers.get("authorization")
        try:
            server: ASGIApp = await self._server.running()
            await run_in_threadpool(self._core.lab.tokens.authenticate, header)
            if request.method != "POST":  # no session: there is nothing to listen to, and nothing to end
                server = make_error(
                    self._core, request, 405, "the tool endpoint takes POST", headers={"Allow": "POST"}
                )
        except ImportError:
            logger.exception("no tool endpoint")
            server = make_error(self._core, request, 501, INSTALL)
        except Refusal as refusal:
            challenge = {"WWW-Authenticate": self._make_challenge_header(header)}
            server = make_error(self._core, request, refusal.status, refusal.message, headers=challenge)
        await server(scope, receive, send)

    def _make_challenge_header(self, header: str | None) -> str:
        """The value of WWW-Authenticate: where a client learns how to sign in (RFC 9728)."""
        base_url = self._core.lab.settings.base_url
        parts = ['error="invalid_token"'] if header else []
        if oauth.is_offered(base_url):
            parts.append(f'resource_metadata="{base_url}{oauth.METADATA}/mcp"')
        return f"Bearer {', '.join(parts)}".rstrip()


def _make_endpoint(core: LabCore, edge: ASGIApp) -> Starlette:
    from assay_lab.web import tool_server  # noqa: PLC0415 - an extra, and slow to import

    return tool_server.create_server(core, edge)


class _InBackground:
    """An application whose lifespan runs in its own task: its task group must end in the task that began it."""

    def __init__(self, make: Callable[[], Starlette]) -> None:
        self._make = make
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Starlette] | None = None

    async def running(self) -> Starlette:
        """The started application; ImportError when its libraries are missing."""
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
        except Exception as failure:  # noqa: BLE001 - handed to the callers that wait for it
            if not ready.done():
                ready.set_exception(failure)
