"""One running lab: its parts wired together, and the way every API request goes through them.

`perform` is the whole service without a web framework: tests and the web layer call the same function.
"""

import logging
from collections.abc import Mapping

from prefect_assay.lab import seeding
from prefect_assay.lab.core import Answer, Call, Lab
from prefect_assay.lab.courier import Courier
from prefect_assay.lab.faults import Faults, WebhookFaults
from prefect_assay.lab.journal import Journal
from prefect_assay.lab.refusals import Refusal
from prefect_assay.lab.routes import Route
from prefect_assay.lab.settings import LabSettings
from prefect_assay.lab.timekeeper import Timekeeper

logger = logging.getLogger("prefect_assay.lab")


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
