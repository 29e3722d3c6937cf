"""The edge of the API, as ASGI middleware: request ids, faults, the journal, and lost answers.

Losing an answer needs the connection itself, which `server` puts into the request's state.
"""

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.concurrency import run_in_threadpool

from prefect_assay.lab import orders
from prefect_assay.lab.faults import Fault
from prefect_assay.lab.service import LabCore
from prefect_assay.lab.settings import API_PREFIX

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_CREATED_OR_ACCEPTED = (200, 201)


class _Held:
    """An answer held back until it is known whether it may leave."""

    def __init__(self) -> None:
        self.status = 500
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""

    async def take(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message.get("headers", []))
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")

    async def send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await send({"type": "http.response.body", "body": self.body})

    def replace(self, status: int, body: dict[str, Any], *headers: tuple[bytes, bytes]) -> None:
        self.status, self.body = status, json.dumps(body).encode()
        kept = [item for item in self.headers if item[0].lower() not in (b"content-length", b"content-type")]
        length = str(len(self.body)).encode()
        self.headers = [*kept, (b"content-type", b"application/json"), (b"content-length", length), *headers]


class Edge:
    """Wraps the web application. Only paths of the API have faults and journal entries."""

    def __init__(self, app: App, core: LabCore) -> None:
        self._app = app
        self._core = core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI entry point."""
        if scope["type"] != "http" or not scope["path"].startswith(API_PREFIX):
            await self._app(scope, receive, send)
            return
        request_id = f"req_{secrets.token_hex(12)}"
        scope.setdefault("state", {})["request_id"] = request_id
        fault = self._core.faults.take(scope["method"], scope["path"])
        answer = _Held()
        answered = await self._handle(scope, receive, answer, fault, request_id)
        handled = fault is None or fault.action != "reset"
        self._note(
            scope,
            status=answer.status if handled else None,
            answered=answered,
            fault=fault,
            request_id=request_id,
        )
        if not answered:
            await _close(scope, receive)
            return
        if not any(name == b"x-request-id" for name, _ in answer.headers):
            answer.headers.append((b"x-request-id", request_id.encode()))
        if fault is not None and fault.action == "late_answer":
            await asyncio.sleep(fault.seconds)
        await answer.send(send)

    async def _handle(
        self, scope: Scope, receive: Receive, answer: _Held, fault: Fault | None, request_id: str
    ) -> bool:
        """Let the request through as the fault allows; whether the answer may leave."""
        if fault is not None and fault.action == "delay":
            await asyncio.sleep(fault.seconds)
        match fault.action if fault else None:
            case "reset":
                return False
            case "status" if fault is not None:
                retry = (
                    [(b"retry-after", f"{fault.retry_after:g}".encode())]
                    if fault.retry_after is not None
                    else []
                )
                answer.replace(
                    fault.status, {"error": "fault asked for by the test", "request_id": request_id}, *retry
                )
                return True
        await self._app(scope, receive, answer.take)
        if fault is not None and fault.action == "partial_create":
            await run_in_threadpool(self._break_order, answer, request_id)
        return fault is None or fault.action != "lose_answer"

    def _break_order(self, answer: _Held, request_id: str) -> None:
        words = self._core.lab.settings.words
        body = words.from_wire(json.loads(answer.body or b"{}"))
        invoice_id = body.get("invoice_id") or body.get("provider_invoice_id")
        if answer.status not in _CREATED_OR_ACCEPTED or not invoice_id:
            return
        with self._core.lab.store.transaction() as db:
            extra = orders.fail_after_creation(self._core.lab, db, invoice_id)
        error = {"error": "the order failed after its invoice was made", "request_id": request_id}
        answer.replace(500, words.to_wire(extra | error))
        self._core.lab.changed()

    def _note(
        self, scope: Scope, *, status: int | None, answered: bool, fault: Fault | None, request_id: str
    ) -> None:
        headers = dict(scope["headers"])
        key = headers.get(b"idempotency-key")
        self._core.journal.add(
            method=scope["method"],
            path=scope["path"],
            query=scope["query_string"].decode("latin-1"),
            status=status,
            request_id=request_id,
            answered=answered,
            fault=fault.action if fault else None,
            idempotency_key=key.decode("latin-1") if key else None,
        )


async def _close(scope: Scope, receive: Receive) -> None:
    """Close the connection without an answer, and wait until the server has noticed."""
    connection = scope["state"].get("connection")
    if connection is None:
        raise RuntimeError("losing an answer needs the lab's own server")
    connection.transport.abort()
    while (await receive())["type"] != "http.disconnect":
        pass
