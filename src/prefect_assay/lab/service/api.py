"""The API as an ASGI application: finds the route, carries the request to the core and its answer back.

It decides nothing. Bodies are read raw: the core validates them with the lab's own schemas and accumulates
findings. Requests for other paths go on to the application behind it.
"""

import json
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool

from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.kernel.settings import API_PREFIX
from prefect_assay.lab.requests.core import Answer
from prefect_assay.lab.routing import Route
from prefect_assay.lab.service.core import ROUTER, LabCore

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

logger = logging.getLogger("prefect_assay.lab")

_UNAUTHORIZED: Final = 401
_FIRST_ERROR: Final = 400


class Api:
    """Serves the paths of the route table; everything else goes on to `behind`."""

    def __init__(self, core: LabCore, behind: App) -> None:
        self._core = core
        self._behind = behind

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI entry point."""
        path = scope["path"].removeprefix(API_PREFIX) if scope["type"] == "http" else ""
        if scope["type"] != "http" or path == scope["path"]:
            await self._behind(scope, receive, send)
            return
        found = ROUTER.find(scope["method"], path)
        if found is not None:
            await _send(send, *await self._answer(scope, receive, *found))
        elif allowed := ROUTER.methods(path):
            body = self._error(scope, "method not allowed here")
            await _send(send, 405, json.dumps(body).encode(), {"Allow": ", ".join(allowed)})
        else:
            await self._behind(scope, receive, send)

    async def _answer(
        self, scope: Scope, receive: Receive, route: Route, path: dict[str, str]
    ) -> tuple[int, bytes, dict[str, str]]:
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1"), value.decode("latin-1"))
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        perform = partial(
            self._core.perform, route, path=path, query=query, headers=headers, body=await _body(receive)
        )
        try:
            answer = await _performed(perform)
        except Refusal as refusal:
            return self._refused(scope, refusal)
        except Exception:
            logger.exception("the lab failed on %s %s", scope["method"], scope["path"])
            return 500, json.dumps(self._error(scope, "internal server error")).encode(), {}
        return self._rendered(scope, answer)

    def _rendered(self, scope: Scope, answer: Answer) -> tuple[int, bytes, dict[str, str]]:
        if answer.body is None:
            return answer.status, b"", dict(answer.headers)
        if isinstance(answer.body, bytes):
            return answer.status, answer.body, {"Content-Type": answer.media_type, **answer.headers}
        spelt = self._core.lab.settings.words.to_wire(answer.body)
        if answer.status >= _FIRST_ERROR:
            spelt |= {"request_id": request_id(scope)}  # contract 2.12, also of a 402
        return answer.status, json.dumps(spelt).encode(), dict(answer.headers)

    def _refused(self, scope: Scope, refusal: Refusal) -> tuple[int, bytes, dict[str, str]]:
        extra = ({"code": refusal.code} if refusal.code else {}) | refusal.extra
        body = self._error(scope, refusal.message, extra)
        headers = {"WWW-Authenticate": "Bearer"} if refusal.status == _UNAUTHORIZED else {}
        return refusal.status, json.dumps(body).encode(), headers

    def _error(self, scope: Scope, message: str, extra: dict[str, Any] | None = None) -> dict[str, Any]:
        """The error body of contract 2.12."""
        body = {"error": message, "request_id": request_id(scope), **(extra or {})}
        spelt: dict[str, Any] = self._core.lab.settings.words.to_wire(body)
        return spelt


def request_id(scope: Scope) -> str:
    """The id that the edge gave the request."""
    return str(scope.get("state", {}).get("request_id", "req_none"))


async def _performed(perform: Callable[..., Answer]) -> Answer:
    """Here and now where nobody else is at it: a thread for each request would cost a third of the lab's speed."""
    try:
        return perform(wait=False)
    except BlockingIOError:
        return await run_in_threadpool(perform)


async def _body(receive: Receive) -> bytes:
    pieces: list[bytes] = []
    while True:
        message = await receive()
        pieces.append(message.get("body", b""))
        if not message.get("more_body"):  # also a disconnect: there is nothing more to read
            return b"".join(pieces)


async def _send(send: Send, status: int, body: bytes, headers: dict[str, str]) -> None:
    sent = {"Content-Type": "application/json", "Content-Length": str(len(body))} | headers
    if not body:
        del sent["Content-Type"]
    encoded = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in sent.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})
