"""What really happens in the demo, from the real sources: the Prefect API, the service, the process table."""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self, TypeVar
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId
from prefect.client.schemas.objects import FlowRun, State

from prefect_assay.localstack.stack import LocalStack
from prefect_assay.runs.queries import read_runs, run_filter
from prefect_assay.runs.tags import GROUP_TAG, campaign_group

T = TypeVar("T")

_STEP_SECONDS: Final = 0.25
_PATIENCE_SECONDS: Final = 90.0


class Watch:
    """Looks at one campaign and its only experiment. Use as a context manager."""

    def __init__(self, stack: LocalStack, campaign_run: UUID, campaign_id: str) -> None:
        self._stack = stack
        self._campaign_run = campaign_run
        self._campaign_id = campaign_id
        self._manager = get_client(sync_client=True)

    def __enter__(self) -> Self:
        self._client = self._manager.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._manager.__exit__(kind, error, trace)

    def until(self, look: Callable[[], T | None], what: str, seconds: float = _PATIENCE_SECONDS) -> T:
        """Look again and again until there is something.

        Raises:
            ConfigurationError: a process ended, a run failed, or time is up; with the end of the flows' log.
        """
        deadline = time.monotonic() + seconds
        while True:
            found = look()
            if found is not None:
                return found
            self._stack.check()
            self._check_runs()
            if time.monotonic() > deadline:
                raise self._stack.failure("runner", f"has not brought about {what} in {seconds:.0f} s")
            time.sleep(_STEP_SECONDS)

    def campaign(self) -> FlowRun:
        """The campaign's run."""
        return self._client.read_flow_run(self._campaign_run)

    def experiment(self) -> FlowRun | None:
        """The run of the campaign's experiment, once it exists."""
        tag = GROUP_TAG + campaign_group(self._campaign_id)
        found = read_runs(self._client, run_filter(tags=[tag]))
        return found[0] if found else None

    def asleep(self) -> FlowRun | None:
        """The experiment's run, when it and the campaign are suspended and no flow process is left."""
        run = self.experiment()
        if run is None or not _suspended(run) or not _suspended(self.campaign()):
            return None
        return run if not self._stack.runner_processes() else None

    def finished(self) -> FlowRun | None:
        """The campaign's run, when it has ended."""
        run = self.campaign()
        return run if run.state is not None and run.state.is_final() else None

    def history(self, run: FlowRun) -> list[State]:
        """All states of a run, oldest first."""
        return sorted(self._client.read_flow_run_states(run.id), key=lambda state: state.timestamp)

    def receipt(self, run: FlowRun) -> str | None:
        """The receipt that the run has left as an artifact."""
        found = self._client.read_artifacts(
            artifact_filter=ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[run.id]))
        )
        texts = [str(a.data) for a in found if (a.key or "").startswith("assay-receipt-")]
        return texts[0] if texts else None

    def _check_runs(self) -> None:
        experiment = self.experiment()
        for run in (self.campaign(), experiment):
            if (
                run is not None
                and run.state is not None
                and (run.state.is_failed() or run.state.is_crashed())
            ):
                raise self._stack.failure(
                    "runner", f"reports that {run.name} ended {run.state.name}: {run.state.message}"
                )


def _suspended(run: FlowRun) -> bool:
    return run.state is not None and run.state.is_paused()
