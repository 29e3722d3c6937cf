"""The lab for tests: its own process on a free port, with a handle that moves its clock and breaks requests.

```python
with LocalLab() as lab, lab.http() as http:
    http.get("/whoami").raise_for_status()
    lab.advance(days=15)
```
"""

import os
import selectors
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from json import loads
from pathlib import Path
from typing import IO, Any, Final, Self

import httpx

from assay_lab.control import commands
from assay_lab.control.client import Controls, LabOrganization, PlacedFault, drop_none, plain_client
from assay_lab.control.commands import SettlementRow
from assay_lab.errors import ConfigurationError

__all__ = ["LabOrganization", "LocalLab", "PlacedFault"]

START_SECONDS: Final = 60.0
STOP_SECONDS: Final = 10.0


class LocalLab(Controls):
    """A running lab process; use it as a context manager.

    Args:
        clock: `manual`, `auto` or `scaled:SECONDS_PER_DAY`.
        database: SQLite file, to start the same lab again later; temporary without.
        landscape: a CSV file to measure from, or `gb1` (lab/docs/lab-measurements.md).
        options: further command-line options, such as `("--provider-word", "acme")`.
        token: member token; random without, as is the control surface's `sim_token`.
        deployment_secret: signs webhooks that have no secret of their own.
        port: 0 takes a free one.
    """

    token_public_key: str  # `ed25519/<hex>`, for attenuating tokens offline
    mcp_url: str  # the tool endpoint
    portal_url: str  # signs the default organization's member in to the portal
    sim_token: str  # of the control surface

    def __init__(
        self,
        *,
        clock: str = "manual",
        database: Path | None = None,
        landscape: Path | str | None = None,
        options: tuple[str, ...] = (),
        token: str | None = None,
        sim_token: str | None = None,
        deployment_secret: str | None = None,
        port: int = 0,
    ) -> None:
        self._command = [
            sys.executable,
            "-P",
            "-m",
            "assay_lab",
            "--port",
            str(port),
            "--clock",
            clock,
        ]
        self._command += ["--allow-http-webhooks", "--until-input-ends", *options]
        if database is not None:
            self._command += ["--database", str(database)]
        if landscape is not None:
            self._command += ["--landscape", str(landscape)]
        if deployment_secret is not None:
            self._command += ["--deployment-secret", deployment_secret]
        secrets = drop_none(ASSAY_LAB_TOKEN=token, ASSAY_LAB_SIM_TOKEN=sim_token)
        self._environment = os.environ | secrets
        self._process: subprocess.Popen[str] | None = None
        self._sim: httpx.Client | None = None
        self._printed: deque[str] = deque(maxlen=40)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> Self:
        """Start the process and wait until it answers.

        Raises:
            ConfigurationError: it ended (with the end of its output), or was not ready after 60 seconds.
        """
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            self._command,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._relay = threading.Thread(target=self._relay_errors, args=(self._process.stderr,), daemon=True)
        self._relay.start()
        vars(self).update(loads(self._first_line()))  # its names are those of the attributes
        self._connect()
        return self

    def _connect(self) -> None:
        self._sim = plain_client(f"{self.base_url}/_sim", self.sim_token, seconds=120)

    def _first_line(self) -> str:
        process = self._process
        if process is None or process.stdout is None:
            raise ConfigurationError("the local lab was not started")
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            answered = selector.select(START_SECONDS)
        line = process.stdout.readline() if answered else ""
        if not line:
            self.stop()
            if answered:
                printed = "".join(self._printed).strip() or "nothing"
                raise ConfigurationError(f"the local lab ended before it was ready; it printed: {printed}")
            raise ConfigurationError(
                f"the local lab was not ready after {START_SECONDS:g} s; the machine may be overloaded"
            )
        return line

    def _relay_errors(self, stream: IO[str]) -> None:
        """Pass the process's error output on, and keep its end for the message of a failed start."""
        for line in stream:
            self._printed.append(line)
            os.write(2, line.encode())

    def stop(self) -> None:
        """End the process; closing its input is enough, and a kill follows when it is not."""
        if self._sim is not None:
            self._sim.close()
            self._sim = None
        process, self._process = self._process, None
        if process is None:
            return
        with process:  # closes its pipes and waits
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
            self._relay.join()

    def kill(self) -> None:
        """End the process without letting it finish anything."""
        if self._process is not None:
            self._process.kill()
        self.stop()

    def sim(self, method: str, path: str, json: dict[str, Any] | None = None, /, **query: Any) -> Any:
        """Call the control surface; its JSON answer, or `httpx.HTTPStatusError` with the lab's reason."""
        if self._sim is None:
            raise ConfigurationError("the local lab is not running")
        answer = self._sim.request(method, path, json=json, params=query)
        if answer.is_error:
            message = f"{method} /_sim{path}: {answer.status_code} {answer.text}"
            raise httpx.HTTPStatusError(message, request=answer.request, response=answer)
        return answer.json()

    def settlements(self) -> list[SettlementRow]:
        """Every settlement in the lab's ledger, oldest first: shows whether something was paid twice."""
        return self._send(commands.SETTLEMENTS)["items"]

    def seed(
        self,
        slug: str,
        *,
        name: str | None = None,
        payment_policy: Sequence[str] | None = None,
        webhook_secret: str | None = None,
    ) -> LabOrganization:
        """Make a further organization with tokens and a clock of its own; 409 when the slug is taken.

        `slug` is lower-case letters and digits. The first rail of `payment_policy` is the default; without it all are
        allowed.
        """
        policy = None if payment_policy is None else list(payment_policy)
        fields = drop_none(name=name, payment_policy=policy, webhook_secret=webhook_secret)
        seeded = self._send(commands.SEED, slug=slug, **fields)
        return LabOrganization(self, slug, seeded)

    def sign_in_link(self, email: str) -> str:
        """Link that signs a user in to the portal, such as `viewer@lab.example`."""
        return self._send(commands.SIGN_IN_LINK, email=email)["portal_url"]

    def end_sessions(self) -> None:
        """Let every portal session expire, and the tokens of tool clients that signed in with them."""
        self._send(commands.END_SESSIONS)

    def reset(self) -> None:
        """Empty the lab; random tokens are replaced, given ones stay."""
        self._adopt(self._send(commands.RESET))
