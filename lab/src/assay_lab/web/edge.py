"""The edge of the API, as ASGI middleware: request ids, faults, the journal and lost answers."""

import asyncio
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assay_lab.kernel.refusals import Refusal, make_request_id
from assay_lab.kernel.settings import API_PREFIX
from assay_lab.service.core import LabCore
from assay_lab.service.faults import BREAKS_ORDER, NEVER_ANSWERED, NEVER_HANDLED, Fault
from assay_lab.service.journal import CALLER, Caller


class HeldAnswer:
    """An answer kept in memory while it is sent."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""
        self.complete = False

    async def take(self, message: Message) -> None:
        """The ASGI `send` of the application that answers."""
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message.get("headers", []))
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")
            self.complete = not message.get("more_body", False)


class _Exchange(HeldAnswer):
    """One request of the API and its answer, held back until it is known whether it may leave."""

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self.scope = scope
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.request_id: str = scope["state"]["request_id"]
        self.caller = Caller()
        self.fault: Fault | None = None

    @property
    def answered(self) -> bool:
        """Whether any part of the answer leaves."""
        if self.fault is None:
            return True
        cut = self.fault.action == "truncate"
        return self.fault.action not in NEVER_ANSWERED and not (cut and not self.body)

    def header(self, name: str) -> str:
        """A header of the request."""
        return Headers(scope=self.scope).get(name, "")

    async def send(self, send: Send, *, keep: int | None = None) -> None:
        """All of the answer, or the head and the first `keep` bytes."""
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        body = self.body if keep is None else self.body[:keep]
        await send({"type": "http.response.body", "body": body, "more_body": keep is not None})

    def fail(self, status: int, body: Mapping[str, Any], retry_after: float | None) -> None:
        """Answer with an error body instead."""
        self.status, self.body = status, json.dumps({**body, "request_id": self.request_id}).encode()
        kept = [item for item in self.headers if item[0].lower() not in (b"content-length", b"content-type")]
        length = str(len(self.body)).encode()
        self.headers = [*kept, (b"content-type", b"application/json"), (b"content-length", length)]
        if retry_after is not None:
            self.headers.append((b"retry-after", f"{retry_after:g}".encode()))


class Edge:
    """Wraps the web application. Only paths of the API have faults and journal entries."""

    def __init__(self, app: ASGIApp, core: LabCore) -> None:
        self._app = app
        self._core = core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI entry point."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = make_request_id()
        scope.setdefault("state", {})["request_id"] = request_id
        if not scope["path"].startswith(API_PREFIX):
            await self._app(scope, receive, _with_request_id(send, request_id))
            return
        exchange = _Exchange(scope)
        CALLER.set(exchange.caller)
        await self._handle(exchange, receive)
        self._note(exchange)
        await self._deliver(exchange, receive, send)

    async def _handle(self, exchange: _Exchange, receive: Receive) -> None:
        """Let the application answer, unless a fault does."""
        fault = None if self._core.faults.idle else await self._take(exchange)
        if fault is None:
            await self._app(exchange.scope, receive, exchange.take)
        elif await self._before(exchange, fault):
            exchange.caller.breaks_order = fault.action in BREAKS_ORDER
            await self._app(exchange.scope, receive, exchange.take)
            self._after(exchange, fault)

    async def _deliver(self, exchange: _Exchange, receive: Receive, send: Send) -> None:
        """Send the answer as the fault wants it: whole, late, cut or not at all."""
        fault = exchange.fault
        if not exchange.answered:
            await _close_connection(exchange.scope, receive)
            return
        if not any(name == b"x-request-id" for name, _ in exchange.headers):
            exchange.headers.append((b"x-request-id", exchange.request_id.encode()))
        if fault is not None and fault.action == "late_answer":
            await asyncio.sleep(fault.seconds)
        if fault is not None and fault.action == "truncate":
            await exchange.send(send, keep=_count_sent_bytes(fault, exchange.body))
            await _close_connection(exchange.scope, receive, flush=True)
        else:
            await exchange.send(send)

    async def _take(self, exchange: _Exchange) -> Fault | None:
        if self._core.faults.aimed:
            await self._find_caller(exchange)
        exchange.fault = self._core.faults.take(
            method=exchange.method, path=exchange.path, organization_id=exchange.caller.organization_id
        )
        return exchange.fault

    async def _find_caller(self, exchange: _Exchange) -> None:
        """Read the token before the service does, for what affects one organization only."""
        authenticate = self._core.lab.tokens.authenticate
        try:
            who = await run_in_threadpool(authenticate, exchange.header("authorization"))
        except Refusal:
            return
        exchange.caller.organization_id, exchange.caller.token_id = who.org_id, who.token_id

    async def _before(self, exchange: _Exchange, fault: Fault) -> bool:
        """What the fault does first; whether the request is handled at all."""
        if fault.action == "delay":
            await asyncio.sleep(fault.seconds)
        elif fault.action == "status":
            self._fail(exchange, fault, HTTPStatus.SERVICE_UNAVAILABLE)
        return fault.action not in NEVER_HANDLED

    def _after(self, exchange: _Exchange, fault: Fault) -> None:
        """What the fault does to a request that is handled and committed."""
        broken = exchange.caller.broken
        if fault.action == "error_after":
            self._fail(exchange, fault, HTTPStatus.INTERNAL_SERVER_ERROR)
        elif broken is not None:
            extra = broken if fault.action == "partial_create" else {}
            self._fail(exchange, fault, HTTPStatus.INTERNAL_SERVER_ERROR, **extra)
        elif fault.action in BREAKS_ORDER:  # there was no order to break
            fault.give_back()

    def _fail(self, exchange: _Exchange, fault: Fault, default: HTTPStatus, **extra: Any) -> None:
        body = self._core.lab.settings.words.to_wire({"error": fault.error, **extra, **fault.fields})
        exchange.fail(fault.status or default, body, fault.retry_after)

    def _note(self, exchange: _Exchange) -> None:
        self._core.journal.add(
            method=exchange.method,
            path=exchange.path,
            query=exchange.scope["query_string"].decode("latin-1"),
            status=exchange.status,
            request_id=exchange.request_id,
            answered=exchange.answered,
            fault=exchange.fault.action if exchange.fault else None,
            idempotency_key=exchange.header("idempotency-key") or None,
            organization_id=exchange.caller.organization_id,
            token_id=exchange.caller.token_id,
        )


def _count_sent_bytes(fault: Fault, body: bytes) -> int:
    """How many bytes of a cut body are sent: at least one is missing."""
    return min(len(body) // 2 if fault.keep_bytes is None else fault.keep_bytes, len(body) - 1)


async def _close_connection(scope: Scope, receive: Receive, *, flush: bool = False) -> None:
    """Close the connection and wait until the server has noticed; `flush` sends what is written first."""
    connection = scope["state"].get("connection")
    if connection is None:
        raise ConnectionResetError("a fault of the lab closes this connection")
    if flush:
        connection.transport.close()
    else:
        connection.transport.abort()
    while (await receive())["type"] != "http.disconnect":
        pass


def _with_request_id(send: Send, request_id: str) -> Send:
    """Pages and unknown paths also carry their request's id."""

    async def named(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), (b"x-request-id", request_id.encode())]
        await send(message)

    return named
