"""A service with the contract's calls and nothing more, on loopback. Its answers are the forms of `forms`; it is not the lab.

`problems` has what of its answers is off the description of the service. It counts what a customer would be billed for: `billed` has the invoice of every accepted quote, `settled` every payment.
Time passes with the readings of the list by ids: the laboratory goes one stage on at each.
"""

import json
import re
import secrets
import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import UUID, uuid4

import httpx

from prefect_assay.service.client import AssayClient
from support.contract import forms
from support.contract.forms import TARGET, page, refuse
from support.description import API_PREFIX, find_operation, find_problems
from support.services.serving import serving
from support.x402 import NETWORK, RECEIVER, USDC, decode, encode, recover

TOKEN = "token_contract_only"
NETWORK_ID = "profile_contract"
TOTAL = 21_900
STAGES = ("waiting_for_materials", "in_queue", "in_production", "data_analysis", "in_review", "done")


@dataclass
class Made:
    """One experiment, in plain facts; the forms are made of them."""

    number: int
    id: str
    name: str
    spec: dict[str, Any]
    rail: str
    base_url: str
    at: datetime
    total: int
    times: Any
    statuses: Any
    state: str = "waiting_for_confirmation"
    quote: str | None = None  # a word of contract 2.6
    invoice: str | None = None
    invoice_state: str = ""
    stage: int = -1
    ends_partial: bool = False

    @property
    def code(self):
        return f"ORG-001-{self.number:03d}"

    @property
    def status(self):
        return self.statuses(self.state)

    @property
    def created(self):
        return self.times(self.at)

    @property
    def later(self):
        return self.times(datetime.now(UTC) + timedelta(days=9))

    @property
    def results_status(self):
        if self.state != "done":
            return "none"
        return "partial" if self.ends_partial else self.statuses("all")

    @property
    def sequences(self):
        entries = self.spec["sequences"]
        return {n: v if isinstance(v, dict) else {"aa_string": v} for n, v in entries.items()}


@dataclass
class ContractService:
    """`form` chooses a form for each part; `lost` are calls whose next answer is dropped, such as `experiments.create`."""

    form: dict[str, str] = field(default_factory=dict)
    lost: Counter = field(default_factory=Counter)
    priced: bool = True
    refuses: tuple[int, Any] | None = None  # the answer to a create
    pinned: str | None = None  # the rail that the token's policy resolves, whatever is asked
    challenge_cents: int | None = None  # another amount in the challenge
    with_date: bool = False
    provider: str = "provider"  # the word for the payment provider in names of fields
    ends_partial: bool = False
    hosted_paid: bool = True  # a person pays a hosted invoice at once
    refuses_filter: bool = False  # of the list of experiments
    unlisted: int = 0  # readings of the list that do not show a new experiment
    made: dict[str, Made] = field(default_factory=dict)
    settled: list[str] = field(default_factory=list)
    billed: list[str] = field(default_factory=list)
    creates: int = 0
    calls: Counter = field(default_factory=Counter)
    journal: list[tuple[str, str]] = field(default_factory=list)  # every request: method and path
    problems: list[str] = field(default_factory=list)
    is_compared: bool = True  # whether each answer is compared with the description
    base_url: str = ""
    challenges: set[str] = field(default_factory=set)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def of(self, part):
        table = forms.FORMS[part]
        return table[self.form.get(part) or next(iter(table))]

    def client(self):
        """A client of the service in the test's process, without a socket."""
        transport = httpx.MockTransport(self._respond)
        return AssayClient(self.base_url, TOKEN, transport=transport, retries=0)

    def _respond(self, request):
        query, path = parse_qs(request.url.query.decode()), request.url.path.removeprefix(API_PREFIX)
        body = json.loads(request.content) if request.content else None
        status, content, headers = self.answer(request.method, path, query, request.headers, body)
        sent = content if isinstance(content, bytes) else json.dumps(content, default=str).encode()
        return httpx.Response(status, content=sent, headers=headers)

    # -- what a customer sees

    def answer(self, method, path, query, headers, body):
        """Status, body and headers of an answer; None where it is lost."""
        self.journal.append((method, path))
        operation = find_operation(method, f"/api/v1{path}")
        play = operation and getattr(self, operation.operation_id.replace(".", "_"), None)
        if play is None:
            self.calls["outside"] += 1
            return *self.of("outside"), {}
        call = operation.operation_id
        self.calls[call] += 1
        if headers.get("authorization") != f"Bearer {TOKEN}":
            return refuse(401, "invalid token")
        names = re.findall(r"\{(\w+)\}", operation.path)
        values = re.fullmatch(re.sub(r"\{\w+\}", "([^/]+)", operation.path), f"/api/v1{path}").groups()
        ids = dict(zip(names, map(unquote, values), strict=True))
        with self.lock:
            answer = play(**ids, query=query, headers=headers, body=body)
        status, content, more = _whole(answer)
        if self.is_compared:
            self.problems += _problems(operation, status, content)
        if self.lost[call] > 0 and (call != "invoices.pay" or _credential(headers)):
            self.lost[call] -= 1
            return None
        return status, content, more

    def _page(self, rows, query):
        offset = int(query.get("offset", ["0"])[0])
        return page(rows[offset:], len(rows), offset)

    def _by_quote(self, quote_id):
        return next(one for one in self.made.values() if f"q-{one.number}" == quote_id)

    def targets_list(self, **_):
        return page([self.of("targets")(TARGET)])

    def experiments_estimate(self, **_):
        return self.of("estimate")(TOTAL) if self.priced else forms.no_price()

    def experiments_create(self, *, body, headers, **_):
        self.creates += 1
        if self.refuses:
            return self.refuses
        asked = (body.get("payment") or {}).get("method") or headers.get("x-service-payment-method")
        number = len(self.made) + 1
        one = Made(
            number=number,
            id=str(UUID(int=0xC0000000000040008000000000000000 + number)),
            name=body.get("name"),
            spec=body["experiment_spec"],
            rail=self.pinned or asked or "async_invoice",
            base_url=self.base_url,
            at=datetime.now(UTC),
            total=TOTAL,
            times=self.of("times"),
            statuses=self.of("statuses"),
            ends_partial=self.ends_partial,
        )
        self.made[one.id] = one
        self.hidden = self.calls["experiments.list"] + self.unlisted
        if body.get("auto_accept_quote"):
            self.accept(one)
            if one.rail != "async_invoice":
                return self.of("accepted")(one)
            return 201, self.of("created")(one) | forms.invoice_fields(one), {}
        one.state = "waiting_for_confirmation" if body.get("skip_draft") else "draft"
        return 201, self.of("created")(one), {}

    def accept(self, one):
        one.quote, one.invoice = "accepted", f"inv_{secrets.token_hex(4)}"
        self.billed.append(one.id)
        machine = one.rail != "async_invoice"
        one.invoice_state = "open"
        if not machine:
            one.stage, one.state = 0, STAGES[0]
            one.invoice_state = "paid" if self.hosted_paid else "open"

    def experiments_list(self, *, query, **_):
        if "filter" in query and self.refuses_filter:
            for one in self.made.values():
                self.go_on(one)
            return refuse(400, "unknown field: id")
        word = query.get("search", [""])[0]
        shown = self.calls["experiments.list"] > getattr(self, "hidden", 0)
        rows = [forms.item(e) for e in self.made.values() if word in (e.name or "") and shown]
        if "filter" in query:  # it is ignored, and asks for the states of experiments
            for one in self.made.values():
                self.go_on(one)
        return self._page(rows, query)

    def go_on(self, one):
        if 0 <= one.stage < len(STAGES) - 1:
            one.stage += 1
            one.state = STAGES[one.stage]

    def experiments_get(self, experiment_id, **_):
        one = self.made.get(experiment_id)
        return refuse(404, "experiment not found") if one is None else self.of("detail")(one)

    def experiments_get_quote(self, experiment_id, **_):
        one = self.made[experiment_id]
        if one.quote is None:
            one.quote, one.state = "open", "quote_sent"
            return refuse(404, "the quote is not generated yet")
        return self.of("quote")(one) | ({} if one.quote == "open" else {"status": one.quote})

    def experiments_confirm_quote(self, experiment_id, **_):
        one = self.made[experiment_id]
        if one.quote != "open":
            return refuse(409, "the quote is not open")
        self.accept(one)
        return self.of("confirmed")(one)

    def quotes_confirm(self, quote_id, **_):
        return self.experiments_confirm_quote(self._by_quote(quote_id).id)

    def quotes_reject(self, quote_id, **_):
        one = self._by_quote(quote_id)
        one.quote, one.state = "rejected", "draft"
        return self.of("rejected")(one)

    def experiments_submit(self, experiment_id, **_):
        self.made[experiment_id].state = "waiting_for_confirmation"
        return self.of("submitted")(self.made[experiment_id])

    def experiments_modify(self, experiment_id, *, body, **_):
        self.made[experiment_id].name = body.get("name", self.made[experiment_id].name)
        return {}

    def experiments_get_invoice(self, experiment_id, **_):
        one = self.made.get(experiment_id)
        if one is None or one.invoice is None:
            step = "quote/confirm" if one and one.quote else "submit"
            return refuse(404, f"no invoice yet: POST /experiments/{experiment_id}/{step}")
        return self.of("invoice")(one)

    def experiments_list_results(self, experiment_id, *, query, **_):
        one = self.made[experiment_id]
        rows = self.of("results")(one) if one.state == "done" else []
        return self._page(rows, query) if isinstance(rows, list) else rows

    def updates_list(self, *, query, **_):
        return self._page([row for one in self.made.values() for row in self.of("updates")(one)], query)

    def results_list(self, **_):
        return page([forms.summary_row(one) for one in self.made.values() if one.state == "done"])

    def quotes_list(self, **_):
        return page([])

    def quotes_get(self, quote_id, **_):
        return self.of("quote")(self._by_quote(quote_id))

    def invoices_pay(self, invoice_id, *, headers, **_):
        one = next((one for one in self.made.values() if one.invoice == invoice_id), None)
        if one is None:
            return refuse(404, "no such invoice")
        if one.rail == "async_invoice":
            return {"status": one.invoice_state}
        sent = _credential(headers)
        if one.invoice_state == "paid":
            return {"already_paid": True}
        if sent is None or not self.takes(one, sent):
            return 402, {"error": "payment required", "request_id": "req_1"}, self.challenge(one)
        self.settled.append(one.id)
        one.invoice_state, one.stage, one.state = "paid", 0, STAGES[0]
        return 200, self.of("paid")(one), _receipt(one)

    def challenge(self, one):
        """The headers of a 402."""
        cents = self.challenge_cents or one.total
        if one.rail == "x402-exact":
            resource = {"url": f"{self.base_url}/api/v1/invoices/{one.invoice}/pay"}
            terms = {"x402Version": 2, "resource": resource, "accepts": [self.offer(cents)]}
            return {"PAYMENT-REQUIRED": encode(terms)}
        name = uuid4().hex
        self.challenges.add(name)
        request = forms.b64(
            {
                "amount": str(cents),
                "currency": "usd",
                "externalId": one.invoice,
                "methodDetails": {"networkId": NETWORK_ID, "paymentMethodTypes": ["card"]},
            }
        )
        expires = (datetime.now(UTC) + timedelta(minutes=5)).isoformat()
        value = (
            f'Payment id="{name}", realm="contract", method="stripe", intent="charge", request="{request}", '
            f'expires="{expires}", header="Payment-Authorization"'
        )
        return {"WWW-Authenticate": value}

    def offer(self, cents):
        return {
            "scheme": "exact",
            "network": NETWORK,
            "asset": USDC,
            "amount": str(cents * 10_000),
            "payTo": RECEIVER,
            "maxTimeoutSeconds": 300,
            "extra": {"name": "USDC", "version": "2"},
        }

    def takes(self, one, sent):
        kind, value = sent
        cents = self.challenge_cents or one.total
        if kind == "x402-exact":
            stated = decode(value)
            signed = stated["payload"]["authorization"]
            fits = stated["accepted"] == self.offer(cents) and signed["value"] == str(cents * 10_000)
            return (
                fits
                and recover(signed, stated["payload"]["signature"], stated["accepted"])
                == signed["from"].lower()
            )
        stated = decode_url(value.removeprefix("Payment "))
        known = stated["challenge"]["id"] in self.challenges
        self.challenges.discard(stated["challenge"]["id"])
        return known and bool(stated["payload"]["spt"])


def decode_url(value):
    return decode(value.replace("-", "+").replace("_", "/") + "=" * (-len(value) % 4))


def _credential(headers):
    for rail, name in (("x402-exact", "payment-signature"), ("mpp-spt", "payment-authorization")):
        if headers.get(name):
            return rail, headers[name]
    return None


def _receipt(one):
    if one.rail == "x402-exact":
        return {
            "PAYMENT-RESPONSE": encode({"success": True, "transaction": "0x" + "ab" * 32, "network": NETWORK})
        }
    return {"Payment-Receipt": forms.b64({"status": "success", "method": "stripe", "reference": "ref-1"})}


def _whole(answer):
    """Status, body and headers of an answer that may name its body alone."""
    status, content, *more = answer if isinstance(answer, tuple) else (200, answer)
    return status, content, more[0] if more else {}


def _problems(operation, status, content):
    """What of an answer is off the description."""
    if status not in operation.statuses:
        return [f"{operation.operation_id} {status}: is not described"]
    if isinstance(content, bytes):
        return [f"{operation.operation_id} {status}: is not JSON"]
    return [
        f"{operation.operation_id} {status}: {problem}"
        for problem in find_problems(content, operation.answer_schema(status))
    ]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def _do(self):
        service = self.server.service
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length)
        parts = urlsplit(self.path)
        path = parts.path.removeprefix("/api/v1")
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = json.loads(raw) if raw else None
        got = service.answer(self.command, path, parse_qs(parts.query), headers, body)
        if got is None:
            self.close_connection = True
            self.connection.close()
            return
        status, content, more = got
        packed = content if isinstance(content, bytes) else json.dumps(content).encode()
        packed = packed.replace(b'"provider_', f'"{service.provider}_'.encode())
        if service.with_date:
            self.send_response(status)
        else:
            self.send_response_only(status)  # the contract promises no Date
        kind = "text/html" if packed[:1] == b"<" else "application/json"
        if packed or status != 204:
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(packed)))
        for name, value in more.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(packed)

    def do_GET(self):
        self._do()

    do_POST = do_PATCH = do_HEAD = do_DELETE = do_GET  # noqa: N815 - the names of http.server


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    service: ContractService

    def handle_error(self, request, client_address):
        pass  # a dropped connection is asked for


@contextmanager
def running(service):
    """The service on a free loopback port."""
    server = _Http(("127.0.0.1", 0), _Handler)
    server.service = service
    with serving(server) as service.base_url:
        yield service
