"""A lab in the test's process behind its web layer: `api` asks the service, `sim` the control surface."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from starlette.testclient import TestClient

from assay_lab.service.core import LabCore
from assay_lab.web.server import create_app
from lab_support.core import lab_core, spec


@dataclass
class Served:
    """A lab and a client of it."""

    core: LabCore
    http: TestClient

    def api(self, method: str, path: str, *, token: str | None = None, **request: Any) -> httpx.Response:
        """One request to the service, by default with the member's token."""
        headers = {"Authorization": f"Bearer {token or self.core.seeded.member_token}"}
        return self.http.request(method, f"/api/v1{path}", headers=headers, **request)

    def sim(self, method: str, path: str, **request: Any) -> httpx.Response:
        """One request to the control surface."""
        headers = {"Authorization": f"Bearer {self.core.lab.settings.sim_token}"}
        return self.http.request(method, f"/_sim{path}", headers=headers, **request)

    def order(self, **fields: Any) -> httpx.Response:
        """POST /experiments."""
        return self.api("POST", "/experiments", json={"experiment_spec": spec(), "name": "sim", **fields})

    def fault(self, action: str, path: str = "*", **details: Any) -> int:
        """Queue a fault; its id."""
        answer = self.sim("POST", "/faults", json={"action": action, "path": path, **details})
        assert answer.status_code == 200, answer.text
        number: int = answer.json()["id"]
        return number

    def used(self, number: int) -> int:
        """How often a fault has struck."""
        (fault,) = [item for item in self.sim("GET", "/faults").json()["items"] if item["id"] == number]
        used: int = fault["used"]
        return used


@contextmanager
def served(**settings: Any) -> Iterator[Served]:
    """Start and end one; unexpected exceptions come up in the test."""
    core = lab_core(**settings)
    try:
        with TestClient(create_app(core), base_url="http://lab") as http:
            yield Served(core, http)
    finally:
        core.close()
