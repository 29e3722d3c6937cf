"""The demo's campaign: its blocks, and what its runs do, read from the Prefect API and the process table."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId
from prefect.client.schemas.objects import FlowRun, State
from pydantic import SecretStr

from prefect_assay.blocks import AssayCredentials, LocalArchive, WebhookEndpoint
from prefect_assay.cli.services.saved_blocks import lab_policy, new_lab_wallet
from prefect_assay.localstack import LocalStack
from prefect_assay.runs.queries import read_runs, run_filter
from prefect_assay.runs.tags import GROUP_TAG, campaign_group

T = TypeVar("T")

BLOCK_NAME: Final = "demo"
CAP_CENTS: Final = 500_000
_POLL_SECONDS: Final = 0.25
_PATIENCE_SECONDS: Final = 90.0


def save_blocks(stack: LocalStack, archive: Path) -> tuple[AssayCredentials, dict[str, object]]:
    """Save one block of each kind, with a fresh wallet; returns the credentials, and all blocks by flow parameter."""
    credentials = AssayCredentials(base_url=stack.lab.base_url, token=SecretStr(stack.lab.token))
    blocks = {
        "credentials": credentials,
        "policy": lab_policy(CAP_CENTS),
        "archive": LocalArchive(root=str(archive)),
        "wallet": new_lab_wallet(),
        "webhook": WebhookEndpoint(url=stack.receiver_url, signing_key=SecretStr(stack.signing_key)),
    }
    for block in blocks.values():
        block.save(BLOCK_NAME, overwrite=True)
    return credentials, dict(blocks)


class CampaignWatch:
    """Reads the state of one campaign and of its only experiment."""

    def __init__(
        self, stack: LocalStack, client: SyncPrefectClient, campaign_run: UUID, campaign_id: str
    ) -> None:
        self._stack = stack
        self._client = client
        self._campaign_run = campaign_run
        self._campaign_id = campaign_id

    def until(self, look: Callable[[], T | None], what: str, seconds: float = _PATIENCE_SECONDS) -> T:
        """Poll until `look` returns something; a process or run that ends, or the timeout, is a `ConfigurationError`."""
        deadline = time.monotonic() + seconds
        while True:
            found = look()
            if found is not None:
                return found
            self._stack.check()
            self._check_runs()
            if time.monotonic() > deadline:
                raise self._stack.failure("runner", f"has not brought about {what} in {seconds:.0f} s")
            time.sleep(_POLL_SECONDS)

    def campaign(self) -> FlowRun:
        """The campaign's run."""
        return self._client.read_flow_run(self._campaign_run)

    def experiment(self) -> FlowRun | None:
        """The run of the campaign's experiment, once it exists."""
        tag = GROUP_TAG + campaign_group(self._campaign_id)
        found = read_runs(self._client, run_filter(tags=[tag]))
        return found[0] if found else None

    def suspended(self) -> FlowRun | None:
        """The experiment's run, once it and the campaign are suspended and no flow process is left."""
        run = self.experiment()
        if run is None or not _suspended(run) or not _suspended(self.campaign()):
            return None
        return run if not self._stack.runner_processes() else None

    def finished(self) -> FlowRun | None:
        """The campaign's run, once it has ended."""
        run = self.campaign()
        return run if run.state is not None and run.state.is_final() else None

    def history(self, run: FlowRun) -> list[State]:
        """All states of a run, oldest first."""
        return sorted(self._client.read_flow_run_states(run.id), key=lambda state: state.timestamp)

    def receipt(self, run: FlowRun) -> str | None:
        """The text of the run's receipt artifact."""
        found = self._client.read_artifacts(
            artifact_filter=ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[run.id]))
        )
        texts = [str(a.data) for a in found if (a.key or "").startswith("assay-receipt-")]
        return texts[0] if texts else None

    def _check_runs(self) -> None:
        for run in (self.campaign(), self.experiment()):
            state = run and run.state
            if run and state and (state.is_failed() or state.is_crashed()):
                raise self._stack.failure(
                    "runner", f"reports that {run.name} ended {state.name}: {state.message}"
                )


def _suspended(run: FlowRun) -> bool:
    return run.state is not None and run.state.is_paused()
