"""The flow run behind an `AssayExperiment`: starting it, waiting for it, reading its results.

Everything is read from Prefect and the archive, so a caller that crashed finds its job again.
"""

import asyncio
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final
from uuid import UUID

from prefect.blocks.abstract import JobRun
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import ObjectNotFound

from prefect_assay.archive import ArchivedVersion, latest
from prefect_assay.archive.layout import TABLE_PATH
from prefect_assay.blocks.experiment_job import AssayExperiment, in_loop_or_not
from prefect_assay.blocks.order_books import open_books
from prefect_assay.designs import check_spec, read_sequences, split
from prefect_assay.errors import InvalidSpec, JobFailed, NotReady, Overdue
from prefect_assay.models.base import Model
from prefect_assay.models.spec import ExperimentSpec
from prefect_assay.ordering import order_key, resolve_target
from prefect_assay.payments.interfaces import address
from prefect_assay.results import ResultRow, from_csv
from prefect_assay.runs import PollPolicy
from prefect_assay.runs.children import start_child
from prefect_assay.runs.states import has_ended, successor_of
from prefect_assay.runs.tags import EXPERIMENT_CODE_LABEL

_SEQUENCES_MAX: Final = 384
_POLL: Final = PollPolicy(first_seconds=2.0, longest_seconds=60.0)


class ExperimentResults(Model):
    """The newest archived version of an experiment: its address, and the rows of its table.

    `results_status` is `partial` while the laboratory still measures.
    """

    experiment_id: str
    experiment_code: str
    campaign_id: str
    results_status: str
    version: int
    location: str
    rows: tuple[ResultRow, ...]


def trigger(job: AssayExperiment) -> "AssayExperimentRun":
    """Check the job and start its flow run, or find it; see `AssayExperiment.trigger`."""
    now = datetime.now(UTC)
    spec = _spec(job)
    key = order_key(job.campaign_id, 0, spec)
    scope = open_books(job.credentials, job.archive).scope(address(job.credentials.base_url))
    run = start_child(
        "experiment",
        # The key of the campaign's own run of this order, so that both share one run.
        f"assay-{scope}-{key}",
        _parameters(job, spec),
        run_name=f"{job.campaign_id} 1/1",
        is_done=lambda found: _version(job, found) is not None,
        since=now,
    )
    return AssayExperimentRun(job, run.id, key)


class AssayExperimentRun(JobRun[ExperimentResults]):
    """A triggered experiment. `flow_run_id` is its run in the Prefect UI."""

    def __init__(self, job: AssayExperiment, flow_run_id: UUID, order_key: str) -> None:
        self.job = job
        self.flow_run_id = flow_run_id
        self.order_key = order_key

    def wait_for_completion(self, patience: timedelta | None = None) -> None:  # type: ignore[override]
        """Wait until the flow run has ended, for days if need be. In an event loop this is `await_for_completion`.

        Raises:
            JobFailed: it ended without complete results; the message says why.
            Overdue: the patience is at an end; the experiment goes on, and waiting again is safe.
        """
        return in_loop_or_not(lambda: self._wait(patience), lambda: self.await_for_completion(patience))

    def _wait(self, patience: timedelta | None) -> None:
        for pause in self._pauses(patience):
            if self._is_over(self._read()):
                return
            time.sleep(pause)

    async def await_for_completion(self, patience: timedelta | None = None) -> None:
        """`wait_for_completion` for async code; many may wait at once."""
        for pause in self._pauses(patience):
            if self._is_over(await asyncio.to_thread(self._read)):
                return
            await asyncio.sleep(pause)

    def fetch_result(self) -> ExperimentResults:  # type: ignore[override]
        """The newest archived results, preliminary ones included. In an event loop this is `afetch_result`.

        Raises:
            NotReady: nothing is archived yet.
            ArchiveError: the archive cannot be read, or has changed.
        """
        return in_loop_or_not(self._fetch, self.afetch_result)

    async def afetch_result(self) -> ExperimentResults:
        """`fetch_result` for async code."""
        return await asyncio.to_thread(self._fetch)

    def _fetch(self) -> ExperimentResults:
        run = self._read()
        found = _version(self.job, run)
        if found is None:
            state = run.state.name if run.state else "new"
            raise NotReady(f"experiment {self.order_key} has nothing in the archive yet; its run is {state}")
        manifest = found.manifest
        return ExperimentResults(
            experiment_id=manifest.experiment_id,
            experiment_code=manifest.experiment_code,
            campaign_id=manifest.campaign_id,
            results_status=manifest.results_status,
            version=manifest.version,
            location=found.location,
            rows=from_csv(found.read(TABLE_PATH)),
        )

    def _read(self) -> FlowRun:
        with get_client(sync_client=True) as client:
            try:
                return successor_of(client, client.read_flow_run(self.flow_run_id))
            except ObjectNotFound as error:
                raise JobFailed(
                    f"the flow run {self.flow_run_id} was deleted; trigger the job again: it finds its order"
                ) from error

    def _is_over(self, run: FlowRun) -> bool:
        if not has_ended(run) or run.state is None:
            return False
        if not run.state.is_completed():
            raise JobFailed(f"flow run {run.name} is {run.state.name}: {run.state.message}")
        return True

    def _pauses(self, patience: timedelta | None) -> Iterator[float]:
        end = time.monotonic() + patience.total_seconds() if patience is not None else None
        for attempt in count():
            yield _POLL.pause(attempt)
            if end is not None and time.monotonic() >= end:
                raise Overdue(f"experiment {self.order_key} has not ended within {patience}; wait again")


def _spec(job: AssayExperiment) -> ExperimentSpec:
    with job.credentials.get_client() as client:
        target = resolve_target(client, job.assay)
    batches = split(read_sequences(job.designs), job.assay, _SEQUENCES_MAX)
    if len(batches) != 1:
        raise InvalidSpec(
            [f"designs: they need {len(batches)} experiments; trigger one job for each, or start a campaign"]
        )
    spec = ExperimentSpec.of(job.assay, batches[0], target.id if target else None)
    InvalidSpec.check(check_spec(spec))
    return spec


def _parameters(job: AssayExperiment, spec: ExperimentSpec) -> dict[str, Any]:
    """The parameters of the flow `experiment`; the others keep the deployment's defaults."""
    same = ("credentials", "policy", "archive", "payment_method", "wallet", "webhook")
    given = {name: getattr(job, name) for name in (*same, "campaign_id", "request_quote", "deadline_days")}
    return {"spec": spec, **{name: value for name, value in given.items() if value is not None}}


def _version(job: AssayExperiment, run: FlowRun) -> ArchivedVersion | None:
    """The newest version of the run's experiment, which the run's label names."""
    code = run.labels.get(EXPERIMENT_CODE_LABEL)
    return (
        latest(job.archive.get_store(), job.archive.prefix, job.campaign_id, code)
        if isinstance(code, str)
        else None
    )
