"""A lab in the test's own process as the other end of a client, without sockets, and what can go wrong at any call."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime

import httpx

from assay_lab.api import find_routes
from assay_lab.kernel.refusals import Refusal
from assay_lab.kernel.settings import API_PREFIX
from prefect_assay.errors import ArchiveUnavailable


class Killed(BaseException):
    """The process is gone."""


@dataclass
class Fate:
    """What befalls one run: at its call number `call`, to the archive or the service, `what` happens, before or after it.

    `kill` ends the run, `lose` loses the request or its answer, `leave` makes the service unreachable from then on, and
    `pause` lets `meanwhile` happen. With `only_acts` the calls that create, accept or pay are counted alone.
    """

    call: int = 0
    what: str = "kill"
    after: bool = False
    only_acts: bool = False
    meanwhile: object = staticmethod(lambda: None)
    calls: int = 0

    def around(self, lost, call, *positional, is_act=False, **named):
        if self.only_acts and not is_act:
            return call(*positional, **named)
        self.calls += 1
        is_due = self.calls == self.call
        if is_due and not self.after:
            self._happen(lost)
        if self.what == "leave" and self.call and self.calls >= self.call and lost is _unanswered:
            raise httpx.ConnectError("unreachable")
        result = call(*positional, **named)
        if is_due and self.after:
            self._happen(lost)
        return result

    def _happen(self, lost):
        match self.what:
            case "kill":
                raise Killed
            case "lose":
                raise lost()
            case "pause":
                self.meanwhile()


def _unanswered():
    return httpx.ReadTimeout("no answer")


def _unwritten():
    return ArchiveUnavailable("no answer of the archive")


class FatedStore:
    """A store whose calls meet the fate of a run."""

    def __init__(self, store, fate):
        self._store, self._fate = store, fate

    def __getattr__(self, name):
        method = getattr(self._store, name)
        if name not in {"put_if_absent", "find", "stat", "read"}:
            return method
        return lambda *positional, **named: self._fate.around(_unwritten, method, *positional, **named)


def is_act(method, path, headers):
    """Whether a request creates, accepts or pays."""
    pays = "payment-signature" in headers or "payment-authorization" in headers
    return method == "POST" and (path == "/experiments" or path.endswith("/confirm") or pays)


@dataclass
class LabTransport(httpx.BaseTransport):
    """The lab's answers to a client.

    Attributes:
        journal: every request that has arrived, as method, path and headers.
        lost: those without an answer, likewise: they may arrive later.
        is_lagging: experiments that are made now are in no list yet.
        unlisted: ids that no list shows.
    """

    core: object
    journal: list = field(default_factory=list)
    lost: list = field(default_factory=list)
    is_lagging: bool = False
    unlisted: set = field(default_factory=set)

    def at(self, fate):
        """The transport of one run."""

        def send(request):
            path = request.url.path.removeprefix(API_PREFIX)
            try:
                act = is_act(request.method, path, request.headers)
                return fate.around(_unanswered, self.answer, request, is_act=act)
            except (httpx.ReadTimeout, Killed):  # it may have left before
                self.lost.append((request.method, path, dict(request.headers)))
                raise

        return httpx.MockTransport(send)

    def answer(self, request):
        path = request.url.path.removeprefix(API_PREFIX)
        self.journal.append((request.method, path, dict(request.headers)))
        routes, parameters = find_routes(path)
        if request.method not in routes:
            return httpx.Response(404, json={"error": "no such path", "request_id": "req_1"})
        headers = {"date": format_datetime(datetime.now(UTC), usegmt=True), "assay-simulated": "true"}
        try:
            reply = self.core.perform(
                routes[request.method],
                path=parameters,
                query=dict(request.url.params),
                headers=dict(request.headers),
                body=request.read(),
            )
        except Refusal as refusal:
            body = {"error": refusal.message, "request_id": "req_1", **refusal.extra}
            body |= {"code": refusal.code} if refusal.code else {}
            return httpx.Response(refusal.status, json=body, headers=headers)
        body = self.core.lab.settings.words.to_wire(reply.body)
        if path == "/experiments":
            body = self._without_unlisted(request.method, body)
        content = b"" if body is None else json.dumps(body).encode()
        kind = {"content-type": "application/json", "content-length": str(len(content))}
        return httpx.Response(reply.status, content=content, headers=headers | kind | (reply.headers or {}))

    def _without_unlisted(self, method, body):
        if method == "POST":
            if self.is_lagging:
                with self.core.lab.store.transaction() as db:
                    self.unlisted.add(db.one("SELECT id FROM experiments ORDER BY seq DESC LIMIT 1")["id"])
            return body
        shown = [item for item in body["items"] if item["id"] not in self.unlisted]
        hidden = len(body["items"]) - len(shown)
        return body | {"items": shown, "count": len(shown), "total": body["total"] - hidden}
