"""The lab for tests: its own process on a free port, with a handle that moves its clock and breaks things.

with LocalLab() as lab:
client = AssayClient(lab.base_url, lab.token)
...
lab.advance(days=15)
"""

import os
import selectors
import subprocess
import sys
from json import loads
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import httpx

from prefect_assay.errors import ConfigurationError

START_SECONDS: Final = 20.0
STOP_SECONDS: Final = 10.0


class LocalLab:
    """A running lab. Use it as a context manager.

    Args:
        clock: `manual`, `auto` or `scaled:SECONDS_PER_DAY`.
        database: SQLite file, to start the same lab again later; temporary without.
        options: further command-line options, such as `("--provider-word", "acme")`.
        token: member token to use instead of a random one.
        sim_token: control token to use instead of a random one.
        deployment_secret: signs webhooks that have no secret of their own.
        port: port to listen on; 0 takes a free one.

    Attributes:
        base_url: address of the service, without /api/v1.
        token: a member's token.
        viewer_token: a read-only token.
        sim_token: token of the control surface.
        organization_id: the tokens' organisation.
    """

    base_url: str
    token: str
    viewer_token: str
    sim_token: str
    organization_id: str

    def __init__(
        self,
        *,
        clock: str = "manual",
        database: Path | None = None,
        options: tuple[str, ...] = (),
        token: str | None = None,
        sim_token: str | None = None,
        deployment_secret: str | None = None,
        port: int = 0,
    ) -> None:
        self._command = [sys.executable, "-m", "prefect_assay.lab", "--port", str(port), "--clock", clock]
        self._command += ["--allow-http-webhooks", "--until-input-ends", *options]
        if database is not None:
            self._command += ["--database", str(database)]
        if deployment_secret is not None:
            self._command += ["--deployment-secret", deployment_secret]
        given = {"PREFECT_ASSAY_LAB_TOKEN": token, "PREFECT_ASSAY_LAB_SIM_TOKEN": sim_token}
        self._environment = os.environ | {name: value for name, value in given.items() if value is not None}
        self._process: subprocess.Popen[str] | None = None
        self._sim: httpx.Client | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> Self:
        """Start the process and wait until it answers.

        Raises:
            ConfigurationError: it ended or said nothing within 20 seconds.
        """
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            self._command,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        ready = loads(self._first_line())
        self.base_url, self.token = ready["base_url"], ready["token"]
        self.viewer_token, self.sim_token = ready["viewer_token"], ready["sim_token"]
        self.organization_id = ready["organization_id"]
        self._sim = httpx.Client(
            base_url=f"{self.base_url}/_sim",
            headers={"Authorization": f"Bearer {self.sim_token}"},
            timeout=120,
            trust_env=False,
        )
        return self

    def _first_line(self) -> str:
        process = self._process
        if process is None or process.stdout is None:
            raise ConfigurationError("the local lab was not started")
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            line = process.stdout.readline() if selector.select(START_SECONDS) else ""
        if not line:
            self.stop()
            raise ConfigurationError("the local lab did not start; its own output above says why")
        return line

    def stop(self) -> None:
        """End the process; closing its input is enough, and a kill follows when it is not."""
        if self._sim is not None:
            self._sim.close()
            self._sim = None
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.communicate(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()

    def kill(self) -> None:
        """End the process without letting it finish anything."""
        if self._process is not None:
            self._process.kill()
        self.stop()

    def sim(self, method: str, path: str, json: dict[str, Any] | None = None, **query: Any) -> Any:
        """Any call of the control surface; its JSON answer."""
        if self._sim is None:
            raise ConfigurationError("the local lab is not running")
        answer = self._sim.request(method, path, json=json, params=query)
        answer.raise_for_status()
        return answer.json()

    def http(self, token: str | None = None) -> httpx.Client:
        """A plain HTTP client for the API, with the member's token unless told otherwise."""
        return httpx.Client(
            base_url=f"{self.base_url}/api/v1",
            headers={"Authorization": f"Bearer {token or self.token}"},
            timeout=30,
            trust_env=False,
        )

    def advance(self, **span: Any) -> dict[str, Any]:
        """Move the clock: `days=`, `hours=`, `minutes=`, `seconds=`, or `until="next"|"idle"`."""
        answer: dict[str, Any] = self.sim("POST", "/clock/advance", span)
        return answer

    def clock(self) -> dict[str, Any]:
        """Lab time and mode."""
        answer: dict[str, Any] = self.sim("GET", "/clock")
        return answer

    def journal(self, after: int = 0) -> list[dict[str, Any]]:
        """Requests to the API so far, oldest first."""
        items: list[dict[str, Any]] = self.sim("GET", "/journal", after=after)["items"]
        return items

    def deliveries(self, after: int = 0) -> list[dict[str, Any]]:
        """Webhook attempts so far, oldest first."""
        items: list[dict[str, Any]] = self.sim("GET", "/deliveries", after=after)["items"]
        return items

    def settlements(self) -> list[dict[str, Any]]:
        """Every settlement in the lab's books, oldest first: the judge of paying once."""
        items: list[dict[str, Any]] = self.sim("GET", "/settlements")["items"]
        return items

    @property
    def x402(self) -> dict[str, Any]:
        """What the lab offers on the x402 rail: `network`, `asset`, `pay_to` and so on."""
        terms: dict[str, Any] = self.sim("GET", "/x402")
        return terms

    def fault(self, action: str, path: str = "*", method: str = "*", **details: Any) -> None:
        """Queue a route fault: status, delay, late_answer, reset, lose_answer, partial_create (docs/lab.md)."""
        self.sim("POST", "/faults", {"action": action, "path": path, "method": method, **details})

    def webhook_fault(self, action: str, count: int = 1) -> None:
        """Queue a webhook fault: drop, double or bad_signature."""
        self.sim("POST", "/webhook-faults", {"action": action, "count": count})

    def event(self, event: str, experiment_id: str, **details: Any) -> dict[str, Any]:
        """Make something happen at the lab: expire_quote, force_status, pay_invoice or progress."""
        answer: dict[str, Any] = self.sim(
            "POST", "/events", {"event": event, "experiment_id": experiment_id, **details}
        )
        return answer

    def seed(self, slug: str, **details: Any) -> dict[str, Any]:
        """A further organisation with its own clock: ids and tokens."""
        answer: dict[str, Any] = self.sim("POST", "/seed", {"slug": slug, **details})
        return answer

    def reset(self) -> None:
        """Empty the lab; random tokens are replaced, given ones stay."""
        answer = self.sim("POST", "/reset")
        self.token, self.viewer_token = answer["member_token"], answer["viewer_token"]
        self.organization_id = answer["organization_id"]
