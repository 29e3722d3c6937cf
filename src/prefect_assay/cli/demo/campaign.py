"""The demo's campaign: its account, and where it is, read from its log, the Prefect API and the process table."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId
from prefect.client.schemas.objects import FlowRun, State
from pydantic import SecretStr

from prefect_assay.blocks import AssayAccount, LocalArchive, WebhookEndpoint
from prefect_assay.campaigns.status import CampaignView, view_of
from prefect_assay.cli.services.saved_blocks import make_lab_account, new_lab_wallet, save_account
from prefect_assay.local.stack import LocalStack
from prefect_assay.orders.ledger.campaign_log import CampaignLog

T = TypeVar("T")

ACCOUNT_NAME: Final = "demo"
CAP_CENTS: Final = 500_000
_POLL_SECONDS: Final = 0.25
# Without any progress; a loaded machine makes little of it, but it makes some.
_PATIENCE_SECONDS: Final = 300.0


def save_demo_account(stack: LocalStack, archive: Path) -> AssayAccount:
    """Save an account at the stack's lab, with a fresh wallet that pays; returns it as it is saved."""
    account = make_lab_account(
        stack.lab.base_url,
        stack.lab.token,
        archive=LocalArchive(root=str(archive)),
        webhook=WebhookEndpoint(url=stack.receiver_url, signing_key=SecretStr(stack.signing_key)),
        wallet=new_lab_wallet(),
        cap_cents=CAP_CENTS,
    )
    save_account(account, ACCOUNT_NAME)
    return AssayAccount.load(ACCOUNT_NAME)


class CampaignWatch:
    """Reads where one campaign is: its log, the state of its run, and the processes below the runner."""

    def __init__(self, stack: LocalStack, client: SyncPrefectClient, run_id: UUID, log: CampaignLog) -> None:
        self._stack = stack
        self._client = client
        self._run_id = run_id
        self._log = log

    def until(self, look: Callable[[], T | None], what: str) -> T:
        """Poll until `look` returns something, as long as the run or its processes make progress.

        Raises:
            ConfigurationError: a process or the run has failed, or nothing has changed for five minutes.
        """
        deadline, progress = 0.0, None
        while True:
            result = look()
            if result is not None:
                return result
            self._stack.check()
            self._check_run()
            before, progress = progress, self._progress()
            if progress != before:
                deadline = time.monotonic() + _PATIENCE_SECONDS
            elif time.monotonic() > deadline:
                raise self._stack.failure(
                    "runner", f"has made no progress towards {what} for {_PATIENCE_SECONDS:.0f} s"
                )
            time.sleep(_POLL_SECONDS)

    def _progress(self) -> tuple[object, ...]:
        """Changes as long as something happens: the run's state, lines in a log, work of the flow's processes."""
        return (
            self.run().state,
            self._stack.cpu_seconds(),
            *(log.stat().st_size for log in self._stack.logs.values()),
        )

    def run(self) -> FlowRun:
        """The campaign's run."""
        return self._client.read_flow_run(self._run_id)

    def suspended(self) -> FlowRun | None:
        """The run, once it is suspended and no flow process is left."""
        run = self.run()
        is_suspended = run.state is not None and run.state.is_paused()
        return run if is_suspended and not self._stack.runner_processes() else None

    def over(self) -> CampaignView | None:
        """The campaign, once its log says that it is over."""
        return view_of(self._log) if self._log.read().over else None

    def history(self) -> list[State]:
        """All states of the run, oldest first."""
        return sorted(self._client.read_flow_run_states(self._run_id), key=lambda state: state.timestamp)

    def receipt(self) -> str | None:
        """The text of the run's receipt artifact."""
        artifacts = self._client.read_artifacts(
            artifact_filter=ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[self._run_id]))
        )
        texts = [str(a.data) for a in artifacts if (a.key or "").startswith("assay-receipt-")]
        return texts[0] if texts else None

    def _check_run(self) -> None:
        run = self.run()
        if run.state and (run.state.is_failed() or run.state.is_crashed()):
            raise self._stack.failure(
                "runner", f"reports that {run.name} ended {run.state.name}: {run.state.message}"
            )
