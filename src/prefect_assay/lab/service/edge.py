"""The edge of the API, as ASGI middleware: request ids, faults, the rate limit, the journal, and lost answers.

Losing an answer needs the connection itself, which `server` puts into the request's state.
"""

import asyncio
import hashlib
import json
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.concurrency import run_in_threadpool

from prefect_assay.lab.experiments import breakage
from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.kernel.settings import API_PREFIX
from prefect_assay.lab.service.core import LabCore
from prefect_assay.lab.service.faults import BREAKS_ORDER, NEVER_ANSWERED, NEVER_HANDLED, Fault, Placed
from prefect_assay.lab.service.journal import CALLER, Caller

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_CREATED_OR_ACCEPTED = (200, 201)


class _Held:
    """An answer held back until it is known whether it may leave."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""

    async def take(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message.get("headers", []))
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")

    async def send(self, send: Send, *, keep: int | None = None) -> None:
        """All of it, or the head and the first `keep` bytes."""
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        body = self.body if keep is None else self.body[:keep]
        await send({"type": "http.response.body", "body": body, "more_body": keep is not None})

    def replace(self, status: int, body: dict[str, Any], retry_after: float | None = None) -> None:
        self.status, self.body = status, json.dumps(body).encode()
        kept = [item for item in self.headers if item[0].lower() not in (b"content-length", b"content-type")]
        length = str(len(self.body)).encode()
        self.headers = [*kept, (b"content-type", b"application/json"), (b"content-length", length)]
        if retry_after is not None:
            self.headers.append((b"retry-after", f"{retry_after:g}".encode()))


class Edge:
    """Wraps the web application. Only paths of the API have faults, a rate limit and journal entries."""

    def __init__(self, app: App, core: LabCore) -> None:
        self._app = app
        self._core = core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI entry point."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = f"req_{secrets.token_hex(12)}"
        scope.setdefault("state", {})["request_id"] = request_id
        if not scope["path"].startswith(API_PREFIX):
            await self._app(scope, receive, _naming(send, request_id))
            return
        caller, answer = Caller(), _Held()
        CALLER.set(caller)
        limited = self._core.limiter.limit is not None and await self._limit(scope, answer, caller)
        placed = None if limited or self._core.faults.idle else await self._take(scope, caller)
        fault = placed.fault if placed else None
        if not limited and (fault is None or await self._before(fault, answer, request_id)):
            await self._app(scope, receive, answer.take)
            if placed is not None:
                await self._after(placed, scope, answer, request_id)
        cut = fault is not None and fault.action == "truncate"
        answered = not (fault and fault.action in NEVER_ANSWERED) and not (cut and not answer.body)
        self._note(scope, answer, caller, answered=answered, what="rate_limit" if limited else fault)
        if not answered:
            await _close(scope, receive)
            return
        if not any(name == b"x-request-id" for name, _ in answer.headers):
            answer.headers.append((b"x-request-id", request_id.encode()))
        if fault is not None and fault.action == "late_answer":
            await asyncio.sleep(fault.seconds)
        if fault is not None and cut:
            await answer.send(send, keep=_part(fault, answer.body))
            await _close(scope, receive, flush=True)
        else:
            await answer.send(send)

    async def _limit(self, scope: Scope, answer: _Held, caller: Caller) -> bool:
        """Count the request against the rate limit; whether it is refused."""
        limit = self._core.limiter.limit
        if limit is not None and limit.organization_id is not None:
            await self._find_caller(scope, caller)
            if caller.organization_id != limit.organization_id:
                return False
        # A digest: the limiter must not keep tokens in plain text either.
        token = hashlib.sha256(_header(scope, b"authorization")).hexdigest()
        seconds = self._core.limiter.refuse(token)
        if seconds is None:
            return False
        body = {"error": "too many requests; try again later", "request_id": scope["state"]["request_id"]}
        answer.replace(429, body, seconds)
        return True

    async def _take(self, scope: Scope, caller: Caller) -> Placed | None:
        method, path = scope["method"], scope["path"]
        if self._core.faults.ask_for_organization(method, path):
            await self._find_caller(scope, caller)
        return self._core.faults.take(method, path, caller.organization_id)

    async def _find_caller(self, scope: Scope, caller: Caller) -> None:
        """Read the token before the service does, for what is meant for one organisation only."""
        header = _header(scope, b"authorization").decode("latin-1")
        try:
            who = await run_in_threadpool(self._core.lab.tokens.authenticate, header)
        except Refusal:
            return
        caller.organization_id, caller.token_id = who.org_id, who.token_id

    async def _before(self, fault: Fault, answer: _Held, request_id: str) -> bool:
        """What the fault does first; whether the request is handled at all."""
        if fault.action == "delay":
            await asyncio.sleep(fault.seconds)
        elif fault.action == "status":
            self._fail(fault, answer, request_id, fault.status or 503)
        return fault.action not in NEVER_HANDLED

    async def _after(self, placed: Placed, scope: Scope, answer: _Held, request_id: str) -> None:
        """What the fault makes of a request that is handled and committed."""
        if placed.fault.action == "error_after":
            self._fail(placed.fault, answer, request_id, placed.fault.status or 500)
        elif placed.fault.action in BREAKS_ORDER:
            await run_in_threadpool(self._break_order, placed, scope["path"], answer, request_id)

    def _fail(self, fault: Fault, answer: _Held, request_id: str, status: int, **extra: Any) -> None:
        body = self._core.lab.settings.words.to_wire({"error": fault.error, **extra, **fault.fields})
        answer.replace(status, body | {"request_id": request_id}, fault.retry_after)

    def _break_order(self, placed: Placed, path: str, answer: _Held, request_id: str) -> None:
        """Void the invoice that the answer names; an answer without one goes out as it is."""
        invoice_id = self._invoice(answer)
        if invoice_id is None:
            self._core.faults.give_back(placed)
            return
        with self._core.lab.store.transaction() as db:
            extra = breakage.break_order(self._core.lab, db, invoice_id, path)
        if placed.fault.action == "post_invoice_failure":
            extra = {}
        self._fail(placed.fault, answer, request_id, placed.fault.status or 500, **extra)
        self._core.lab.changed()

    def _invoice(self, answer: _Held) -> str | None:
        if answer.status not in _CREATED_OR_ACCEPTED:
            return None
        try:
            body = self._core.lab.settings.words.from_wire(json.loads(answer.body))
        except ValueError:
            return None  # a file
        found = body.get("invoice_id") or body.get("provider_invoice_id")
        return str(found) if found else None

    def _note(
        self, scope: Scope, answer: _Held, caller: Caller, *, answered: bool, what: str | Fault | None
    ) -> None:
        key = _header(scope, b"idempotency-key")
        self._core.journal.add(
            method=scope["method"],
            path=scope["path"],
            query=scope["query_string"].decode("latin-1"),
            status=answer.status,
            request_id=scope["state"]["request_id"],
            answered=answered,
            fault=what.action if isinstance(what, Fault) else what,
            idempotency_key=key.decode("latin-1") or None,
            organization_id=caller.organization_id,
            token_id=caller.token_id,
        )


def _header(scope: Scope, wanted: bytes) -> bytes:
    return next((value for name, value in scope["headers"] if name == wanted), b"")


def _part(fault: Fault, body: bytes) -> int:
    """How many bytes of a cut body go out: at least one is missing."""
    return min(len(body) // 2 if fault.keep_bytes is None else fault.keep_bytes, len(body) - 1)


async def _close(scope: Scope, receive: Receive, *, flush: bool = False) -> None:
    """Close the connection and wait until the server has noticed; `flush` lets out what is written."""
    connection = scope["state"].get("connection")
    if connection is None:
        raise ConnectionResetError("a fault of the lab closes this connection")
    if flush:
        connection.transport.close()
    else:
        connection.transport.abort()
    while (await receive())["type"] != "http.disconnect":
        pass


def _naming(send: Send, request_id: str) -> Send:
    """Every answer carries its request's id, those of pages and unknown paths as well."""

    async def named(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), (b"x-request-id", request_id.encode())]
        await send(message)

    return named
