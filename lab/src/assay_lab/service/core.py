"""One running lab: its parts, and `LabCore.perform`, the whole service without a web framework."""

import json
import sqlite3
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from assay_lab.api import Route, find_operation, find_routes
from assay_lab.experiments import orders
from assay_lab.experiments.clock_driver import ClockDriver
from assay_lab.kernel.faults import FaultList, WebhookFault
from assay_lab.kernel.refusals import Refusal, database_unavailable
from assay_lab.kernel.settings import LabSettings
from assay_lab.requests.core import Answer, Call, Lab
from assay_lab.service import seeding
from assay_lab.service.faults import Fault
from assay_lab.service.journal import CALLER, Journal, name_caller
from assay_lab.tokens import sessions
from assay_lab.tokens.principal import ANONYMOUS, Principal
from assay_lab.webhooks.sender import Sender

_DONE: Final = frozenset({HTTPStatus.OK, HTTPStatus.CREATED})


class LabCore:
    """A lab without a web layer. `seeded` holds the tokens of this start."""

    def __init__(self, settings: LabSettings | None = None) -> None:
        self.lab = Lab(settings or LabSettings())
        self.faults = FaultList[Fault]()
        self.webhook_faults = FaultList[WebhookFault]()
        self.journal = Journal()
        self.sender = Sender(self.lab, self.webhook_faults)
        self.clock_driver = ClockDriver(self.lab, self.sender)
        self.seeded = seeding.start_lab(self.lab)
        self._threads = False

    def start(self) -> None:
        """Start the background threads: running clocks and webhook delivery."""
        self._threads = True
        self.sender.start()
        self.clock_driver.start()

    def close(self) -> None:
        """Stop the threads and close the database."""
        if self._threads:
            self.clock_driver.stop()
            self.sender.stop()
        self.lab.store.close()

    def clear_faults(self, organization_id: str | None = None) -> None:
        """Drop all faults, of routes, webhooks and payments, or those of one organization."""
        self.faults.clear(organization_id)
        self.webhook_faults.clear(organization_id)
        self.lab.payment_faults.clear(organization_id)

    def reset(self) -> seeding.Seeded:
        """Empty the lab: data, clocks, faults and journals."""
        with self.lab.store.transaction():  # requests wait
            self.clear_faults()
            self.journal.clear()
            self.seeded = seeding.reset_lab(self.lab)
        self.lab.changed()
        return self.seeded

    def sign_in_link(self, email: str) -> str:
        """The link that signs a user in to the portal; 404 when there is no such user."""
        with self.lab.store.transaction() as db:
            if db.one("SELECT 1 FROM users WHERE email = ?", email.lower()) is None:
                raise Refusal(404, f"no user {email!r}")
        return sessions.sign_in_link(self.lab.settings, email)

    def request(
        self,
        method: str,
        path: str,
        *,
        token: str | None = None,
        json_body: Any = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request without HTTP, for unit tests; `path` is relative to /api/v1. Refuses as the service."""
        sent = {name.lower(): value for name, value in (headers or {}).items()}
        sent.setdefault("authorization", f"Bearer {token or self.seeded.member_token}")
        body = b""
        if json_body is not None:
            sent.setdefault("content-type", "application/json")
            body = json.dumps(json_body).encode()
        routes, parameters = find_routes(path)
        if method not in routes:
            raise Refusal(404, "no such path")
        return self.perform(routes[method], path=parameters, query=query or {}, headers=sent, body=body)

    def perform(
        self,
        route: Route,
        *,
        path: Mapping[str, str],
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
    ) -> Answer:
        """Authenticate, check the role, and handle; refuses as the service."""
        try:
            who = self._authorized(route, headers)
            return self._handle(route, Call(self.lab, who, path, query, headers, body))
        finally:
            if route.writes:
                self.lab.changed()

    def _handle(self, route: Route, call: Call) -> Answer:
        """Handle; a fault breaks the order before it is committed, so that it never goes on meanwhile.

        Calls about an invoice name one that they have not made.
        """
        caller = CALLER.get()
        if caller is None or not caller.breaks_order or route.resource == "invoice":
            return route.handler(call)
        with self.lab.store.transaction() as db:
            answer = route.handler(call)
            fields = answer.body if isinstance(answer.body, dict) and answer.status in _DONE else {}
            if invoice_id := fields.get("invoice_id") or fields.get("provider_invoice_id"):
                caller.broken = orders.break_order(self.lab, db, invoice_id, route.path)
        return answer

    def _authorized(self, route: Route, headers: Mapping[str, str]) -> Principal:
        if route.open:
            return ANONYMOUS
        try:
            who = self.lab.tokens.authenticate(headers.get("authorization"))
        except sqlite3.Error as error:
            if str(HTTPStatus.SERVICE_UNAVAILABLE.value) not in find_operation(route)["responses"]:
                raise
            raise database_unavailable() from error  # the token is looked up in what the call asks about
        name_caller(who.org_id, who.token_id)
        self.lab.tokens.authorize(who, route.action, route.resource, destructive=route.destructive)
        return who
