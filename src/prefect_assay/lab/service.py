"""One running lab: its parts wired together, and the way every API request goes through them.

`perform` is the whole service without a web framework: tests and the web layer call the same function.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from prefect_assay.lab import seeding
from prefect_assay.lab.core import Answer, Call, Lab
from prefect_assay.lab.courier import Courier
from prefect_assay.lab.faults import Faults, WebhookFaults
from prefect_assay.lab.journal import Journal
from prefect_assay.lab.refusals import Refusal
from prefect_assay.lab.routes import ROUTES, Route
from prefect_assay.lab.settings import LabSettings
from prefect_assay.lab.timekeeper import Timekeeper

_PATTERNS: Final = {
    route.path: re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", route.path)) for route in ROUTES
}


class LabCore:
    """A lab without a web layer. `seeded` holds the tokens of this start."""

    def __init__(self, settings: LabSettings | None = None) -> None:
        self.lab = Lab(settings or LabSettings())
        self.faults = Faults()
        self.webhook_faults = WebhookFaults()
        self.journal = Journal()
        self.courier = Courier(self.lab, self.webhook_faults)
        self.timekeeper = Timekeeper(self.lab, self.courier)
        self.seeded = seeding.start(self.lab)
        self._threads = False

    def start(self) -> None:
        """Start the background threads: running clocks and webhook delivery."""
        self._threads = True
        self.courier.start()
        self.timekeeper.start()

    def close(self) -> None:
        """Stop the threads and close the database."""
        if self._threads:
            self.timekeeper.stop()
            self.courier.stop()
        self.lab.store.close()

    def reset(self) -> seeding.Seeded:
        """Empty the lab: data, clocks, faults and journals."""
        self.faults.clear()
        self.webhook_faults.clear()
        self.journal.clear()
        self.seeded = seeding.reset(self.lab)
        self.lab.changed()
        return self.seeded

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
        """One request without HTTP, for unit tests; `path` is relative to /api/v1.

        Raises:
            Refusal: whatever the service would refuse with; 404 for a path that does not exist.
        """
        sent = {name.lower(): value for name, value in (headers or {}).items()}
        sent.setdefault("authorization", f"Bearer {token or self.seeded.member_token}")
        body = b""
        if json_body is not None:
            sent.setdefault("content-type", "application/json")
            body = json.dumps(json_body).encode()
        for route in ROUTES:
            found = _PATTERNS[route.path].fullmatch(path) if route.method == method else None
            if found:
                return self.perform(route, path=found.groupdict(), query=query or {}, headers=sent, body=body)
        raise Refusal(404, "no such path")

    def perform(
        self,
        route: Route,
        *,
        path: Mapping[str, str],
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
    ) -> Answer:
        """Authenticate, check the role, and handle.

        Raises:
            Refusal: whatever the service would refuse with.
        """
        who = self.lab.tokens.authenticate(headers.get("authorization"))
        if route.access == "write" and who.role != "member":
            raise Refusal(403, f"a {who.role} token may not do this; it takes a member token")
        try:
            return route.handler(Call(self.lab, who, path, query, headers, body))
        finally:
            if route.access == "write":
                self.lab.changed()
