"""The API over HTTP: carries a request to its handler and the answer back. Bodies are passed on raw."""

import asyncio
import contextvars
import json
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from assay_lab.api import Route, find_routes
from assay_lab.kernel.refusals import Refusal
from assay_lab.kernel.settings import API_PREFIX
from assay_lab.requests.core import Answer
from assay_lab.service.core import LabCore

logger = logging.getLogger("assay_lab")


class Dispatcher:
    """Serves the paths of the route table; everything else goes on to `behind`."""

    def __init__(self, core: LabCore, behind: ASGIApp) -> None:
        self._core = core
        self._behind = behind
        # The database serves one call at a time: a second thread would only wait for it, and slow both down.
        self._thread = ThreadPoolExecutor(1, "lab-call")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI entry point."""
        if scope["type"] != "http" or not scope["path"].startswith(API_PREFIX):
            await self._behind(scope, receive, send)
            return
        routes, parameters = find_routes(scope["path"].removeprefix(API_PREFIX))
        if not routes:
            await self._behind(scope, receive, send)
            return
        request = Request(scope, receive)
        if route := routes.get(request.method):
            response = await self._answer(route, parameters, request)
        else:
            allowed = {"Allow": ", ".join(sorted(routes))}
            response = make_error(self._core, request, 405, "method not allowed here", headers=allowed)
        await response(scope, receive, send)

    async def _answer(self, route: Route, path: Mapping[str, str], request: Request) -> Response:
        perform = partial(
            self._core.perform,
            route,
            path=path,
            query=dict(request.query_params),
            headers=dict(request.headers),
            body=await _read_body(request),
        )
        try:
            answer = await self._run(perform)
        except Refusal as refusal:
            return make_refusal(self._core, request, refusal)
        except Exception:
            logger.exception("the lab failed on %s %s", request.method, request.scope["path"])
            return make_error(self._core, request, 500, "internal server error")
        return self._rendered(answer, request)

    async def _run(self, perform: Callable[[], Answer]) -> Answer:
        """Carry a call out in the thread, in the context of its request."""
        in_context = contextvars.copy_context().run
        return await asyncio.get_running_loop().run_in_executor(self._thread, in_context, perform)

    def _rendered(self, answer: Answer, request: Request) -> Response:
        if answer.body is None:
            return Response(status_code=answer.status, headers={"Content-Length": "0", **answer.headers})
        if isinstance(answer.body, bytes):
            return Response(answer.body, answer.status, answer.headers, answer.media_type)
        body = self._core.lab.settings.words.to_wire(answer.body)
        if answer.status >= HTTPStatus.BAD_REQUEST:
            body |= {"request_id": _request_id(request)}  # contract 2.12, also of a 402
        return _make_json(body, answer.status, answer.headers)


def make_error(
    core: LabCore,
    request: Request,
    status: int,
    message: str,
    *,
    extra: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The error body of contract 2.12."""
    body = {"error": message, "request_id": _request_id(request), **(extra or {})}
    return _make_json(core.lab.settings.words.to_wire(body), status, headers)


def make_refusal(core: LabCore, request: Request, refusal: Refusal) -> Response:
    """A refusal as a response."""
    extra = ({"code": refusal.code} if refusal.code else {}) | refusal.extra
    headers = {"WWW-Authenticate": "Bearer"} if refusal.status == HTTPStatus.UNAUTHORIZED else {}
    return make_error(core, request, refusal.status, refusal.message, extra=extra, headers=headers)


def _make_json(body: Any, status: int, headers: Mapping[str, str] | None) -> Response:
    return Response(json.dumps(body), status, headers, "application/json")


def _request_id(request: Request) -> str:
    return str(getattr(request.state, "request_id", "req_none"))


async def _read_body(request: Request) -> bytes:
    """All that arrived: unlike `request.body()`, a connection that breaks ends the body without an error."""
    pieces: list[bytes] = []
    while True:
        message = await request.receive()
        pieces.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(pieces)
