"""One running installation for the waiting benchmarks: a local stack, saved blocks, and one suspended campaign."""

import json
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun
from prefect.settings import PREFECT_API_URL, PREFECT_HOME, PREFECT_LOGGING_TO_API_ENABLED, temporary_settings

from prefect_assay.blocks import AssayAccount, AssayCredentials, LocalArchive, SpendingPolicy, WebhookEndpoint
from prefect_assay.blocks.deployment_runs import start_run
from prefect_assay.campaigns.runs.tags import EXPERIMENT_TAG, tag_values
from prefect_assay.deployments.settings_files import RUNNER, read_shipped_settings
from prefect_assay.local.processes import read_tail
from prefect_assay.local.stack import LocalStack
from prefect_assay.service.models.service import WireWords
from prefect_assay.service.webhook_signature import derive_secret, sign

POLLING = "PREFECT_RUNNER_POLL_FREQUENCY"
EGFR = "Human EGFR, extracellular domain"
BINDER = "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR"


def eventually(check: Callable[[], Any], *, seconds: float, what: str, step: float = 0.1) -> Any:
    """Poll until the check gives something true."""
    deadline = time.monotonic() + seconds
    while not (value := check()):
        if time.monotonic() > deadline:
            raise SystemExit(f"gave up after {seconds} s waiting for {what}")
        time.sleep(step)
    return value


@dataclass
class Installation:
    """A stack with saved blocks, and the means to wake a run as the service does."""

    stack: LocalStack
    api: SyncPrefectClient
    parameters: dict[str, Any]
    web: httpx.Client

    @contextmanager
    def polling_every(self, seconds: int) -> Iterator[None]:
        """Serve the flows with another polling interval meanwhile."""
        before = self.stack.env[POLLING]
        self._serve_again(str(seconds))
        yield
        self._serve_again(before)

    def _serve_again(self, seconds: str) -> None:
        self.stack.stop_runner()
        self.stack.env[POLLING] = seconds
        self.stack.start_runner()

    def suspended_campaign(self, campaign_id: str) -> FlowRun:
        """Order one experiment with a hosted invoice; the campaign's run, asleep, with no process left."""
        run = start_run("campaign/assay-campaign", self.parameters | {"campaign_id": campaign_id})
        self.asleep(run)
        return self.api.read_flow_run(run.id)

    def asleep(self, run: FlowRun, seconds: float = 90) -> None:
        """Wait until the run is suspended and its process is gone."""

        def reached() -> bool:
            state = self.api.read_flow_run(run.id).state
            if state and state.is_final():
                raise SystemExit(f"the run ended: {state!r}")
            return bool(state and state.name == "Suspended") and not self.stack.runner_processes()

        eventually(reached, seconds=seconds, what="the run to be suspended without a process")

    def order_key(self, run: FlowRun) -> str:
        """The order key, from the name of the experiment at the service."""
        (experiment_id,) = tag_values(run.tags, EXPERIMENT_TAG)
        name = self._experiment(experiment_id)["name"]
        return next(word.removeprefix("pa-") for word in name.split() if word.startswith("pa-"))

    def wake(self, run: FlowRun, order_key: str) -> tuple[float, float]:
        """Deliver until a delivery wakes the run; when that one was sent and when it was answered.

        The lab delivers too: its update may have woken the run just before ours.
        """
        for _ in range(5):
            self.asleep(run)
            sent, answered, resumed = self.deliver(run, order_key)
            if resumed:
                return sent, answered
            time.sleep(2)
        raise SystemExit("no delivery woke the run")

    def deliver(self, run: FlowRun, order_key: str) -> tuple[float, float, int]:
        """Send a genuine, new update for the run's experiment; sent, answered, how many runs it resumed."""
        (experiment_id,) = tag_values(run.tags, EXPERIMENT_TAG)
        body = _delivery(experiment_id)
        words = WireWords()
        headers = {
            "Content-Type": "application/json",
            words.header("Event"): "experiment_update",
            words.header("Delivery-Id"): json.loads(body)["delivery_id"],
            words.header("Signature"): sign(body, derive_secret(self.stack.signing_key, order_key)),
        }
        sent = time.time()
        answer = self.web.post(f"{self.stack.receiver_url}/{order_key}", content=body, headers=headers)
        answered = time.time()
        if answer.status_code != 200:
            log = read_tail(self.stack.logs["receiver"])
            raise SystemExit(f"the delivery was refused: {answer.status_code} {answer.text}\n{log}")
        return sent, answered, answer.json()["resumed"]

    def _experiment(self, experiment_id: str) -> dict[str, Any]:
        answer = self.web.get(
            f"{self.stack.lab.base_url}/api/v1/experiments/{experiment_id}",
            headers={"Authorization": f"Bearer {self.stack.lab.token}"},
        )
        return answer.raise_for_status().json()


def _delivery(experiment_id: str) -> bytes:
    return json.dumps(
        {
            "delivery_id": str(uuid.uuid4()),
            "event": "experiment_update",
            "timestamp": datetime.now(UTC).isoformat(),
            "api_version": "2026-01",
            "data": {
                "type": "experiment.update",
                "experiment_id": experiment_id,
                "experiment_code": "ORG-001-002",
                "organization_id": str(uuid.uuid4()),
                "update_id": str(uuid.uuid4()),
                "name": "Assay started",
                "description": "The assay is running.",
                "update_type": "status_change",
            },
        }
    ).encode()


@contextmanager
def installation(folder: Path, *, python_path: Path | None = None, **options: Any) -> Iterator[Installation]:
    """Start a stack and save blocks on its server; everything is stopped at the end."""
    env = read_shipped_settings(RUNNER) | dict(
        options.pop("env", {})
    )  # a stack of its own accord polls more often
    if python_path is not None:
        env["PYTHONPATH"] = os.pathsep.join(
            part for part in (str(python_path), os.environ.get("PYTHONPATH")) if part
        )
    stack = LocalStack(folder / "stack", env=env, **options)
    settings = {
        PREFECT_API_URL: stack.api_url,
        PREFECT_HOME: folder / "client-home",
        PREFECT_LOGGING_TO_API_ENABLED: False,
    }
    with (
        temporary_settings(updates=settings),
        stack,
        get_client(sync_client=True) as api,
        httpx.Client() as web,
    ):
        yield Installation(stack, api, _parameters(stack, folder), web)


def _parameters(stack: LocalStack, folder: Path) -> dict[str, Any]:
    blocks = {
        "credentials": AssayCredentials(base_url=stack.lab.base_url, token=stack.lab.token),
        "policy": SpendingPolicy(accept_quotes=True, per_experiment_usd=20_000, per_campaign_usd=50_000),
        "webhook": WebhookEndpoint(url=stack.receiver_url, signing_key=stack.signing_key),
        "archive": LocalArchive(root=str(folder / "archive")),
    }
    for name, block in blocks.items():
        block.save(f"bench-{name}", overwrite=True)
    account = AssayAccount(**blocks)
    account.save("bench", overwrite=True)
    return {
        "account": account,
        "spend_up_to_usd": 50_000,
        "designs": f">design\n{BINDER}\n",
        "assay": {"experiment_type": "affinity", "method": "bli", "target": EGFR},
    }
