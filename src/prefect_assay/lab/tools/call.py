"""Carries out a tool's request by sending it through the lab's own edge, as if it had come over HTTP.

So a tool call meets the same token checks, faults, rate limit and journal as the request it stands for, and its
answer has the same words, headers and error body. Knows nothing of the tool protocol.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from prefect_assay.lab.service.api import App, Message, Scope
from prefect_assay.lab.tools.catalog import Request

# Headers that people know under another spelling than the lower case of the rest.
_SPELT: Final = {
    name.lower(): name
    for name in ("WWW-Authenticate", "PAYMENT-REQUIRED", "PAYMENT-RESPONSE", "Payment-Receipt", "Retry-After")
}
_OF_THE_WIRE: Final = frozenset({"content-length", "connection", "transfer-encoding"})


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of the API."""

    status: int
    headers: Mapping[str, str]
    media_type: str
    body: bytes


class LostAnswer(Exception):
    """A fault broke the connection before the answer was whole."""


class _Exchange:
    """Both ends of one request inside the process."""

    def __init__(self, body: bytes) -> None:
        self._unread: bytes | None = body
        self._status = 500
        self._headers: list[tuple[bytes, bytes]] = []
        self._body = b""
        self._whole = False

    async def receive(self) -> Message:
        if self._unread is None:  # whoever asks again waits for the end of the connection
            return {"type": "http.disconnect"}
        body, self._unread = self._unread, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status, self._headers = message["status"], list(message.get("headers", ()))
        elif message["type"] == "http.response.body":
            self._body += message.get("body", b"")
            self._whole = not message.get("more_body", False)

    def reply(self) -> Reply:
        if not self._whole:
            raise LostAnswer
        headers: dict[str, str] = {}
        for raw, value in self._headers:
            name = raw.decode("latin-1").lower()
            name, text = _SPELT.get(name, name), value.decode("latin-1")
            headers[name] = f"{headers[name]}, {text}" if name in headers else text
        media_type = headers.pop("content-type", "").partition(";")[0].strip()
        kept = {name: value for name, value in headers.items() if name not in _OF_THE_WIRE}
        return Reply(self._status, kept, media_type, self._body)


async def carry_out(edge: App, request: Request, *, authorization: str, outer: Mapping[str, Any]) -> Reply:
    """The answer to a tool's request; LostAnswer when a fault broke the connection.

    `authorization` is the caller's header, which the API checks again. `outer` is the scope of the HTTP request that
    the tool call came in: a fault closes its connection.
    """
    headers = {**request.headers, "authorization": authorization, "content-length": str(len(request.body))}
    host = [(name, value) for name, value in outer.get("headers", ()) if name == b"host"]
    sent = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    connection = outer.get("state", {}).get("connection")
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": outer.get("scheme", "http"),
        "path": request.path,
        "raw_path": request.path.encode(),
        "query_string": request.query.encode(),
        "root_path": "",
        "headers": [*host, *sent],
        "client": outer.get("client"),
        "server": outer.get("server"),
        "state": {} if connection is None else {"connection": connection},
    }
    exchange = _Exchange(request.body)
    await edge(scope, exchange.receive, exchange.send)
    return exchange.reply()
