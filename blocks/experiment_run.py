"""The campaign of one experiment behind an `AssayExperiment`: starting it, waiting for it, reading its results.

Everything is read from the campaign's log, the order's ledger and the archive, so a caller that crashed finds its job
again, and a flow run that was deleted or replaced changes nothing.
"""

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

from prefect_assay.analysis.results import ResultRow, from_csv
from prefect_assay.archive.campaign_plan import Plan
from prefect_assay.archive.layout import TABLE_PATH
from prefect_assay.archive.plans import campaign_address, fix_plan
from prefect_assay.archive.read import latest_by_experiment
from prefect_assay.blocks.campaign_plan import split_into_experiments
from prefect_assay.blocks.deployment_runs import deployment_of, start_run
from prefect_assay.blocks.experiment_job import AssayExperiment
from prefect_assay.blocks.order_ledger import open_ledgers
from prefect_assay.designs.read import read_sequences
from prefect_assay.errors import ArchiveUnavailable, InvalidSpec, JobFailed, NotReady, Overdue
from prefect_assay.orders.ledger import Ledgers
from prefect_assay.orders.ledger.campaign_log import CampaignLog, CampaignState
from prefect_assay.orders.payments.interfaces import normalize_address
from prefect_assay.orders.targets import resolve_target
from prefect_assay.service.models.base import Model

_SEQUENCES_MAX: Final = 384
_ATTEMPTS_MAX: Final = 50
_FIRST_PAUSE_SECONDS: Final = 2.0
_LONGEST_PAUSE_SECONDS: Final = 60.0
_PAUSE_FACTOR: Final = 1.5


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


def start_job(job: AssayExperiment) -> "AssayExperimentRun":
    """Check the job and start its campaign, or find it; see `AssayExperiment.trigger`."""
    now = datetime.now(UTC)
    plan = _make_plan(job)
    key = plan.experiments[0].order_key
    ledgers = open_ledgers(job.account.credentials, job.account.archive)
    fix_plan(ledgers.store, ledgers.prefix, plan.model_copy(update={"archive_id": ledgers.archive_id}))
    state = _open_log(job).read()
    if state.is_open or state.stopped is not None or (state.over is not None and state.over.complete):
        return AssayExperimentRun(job, next(reversed(state.runs), None), key)
    scope = f"assay-job-{ledgers.derive_scope(normalize_address(job.account.credentials.base_url))}-{key}-{len(state.runs)}"
    run = _start_run(job, scope, now)
    earlier_end = state.over.id if state.over else None
    return AssayExperimentRun(job, str(run.id), key, earlier_end=earlier_end)


def _start_run(job: AssayExperiment, key: str, now: datetime) -> FlowRun:
    """Start the campaign's flow run, or find the one that another caller has started and that has not ended yet."""
    for attempt in range(1, _ATTEMPTS_MAX + 1):
        run = start_run(
            deployment_of("campaign"),
            _make_parameters(job),
            name=job.campaign_id,
            idempotency_key=f"{key}-{attempt}",
        )
        # One that had ended before this call began no campaign: its reason may be gone by now.
        if run.state is None or not run.state.is_final() or run.created is None or run.created >= now:
            return run
    raise JobFailed(
        f"the flow runs of campaign {job.campaign_id} have ended {_ATTEMPTS_MAX} times before they began it; look at them in "
        "the Prefect UI"
    )


class AssayExperimentRun(JobRun[ExperimentResults]):
    """A triggered experiment. `flow_run_id` is the run that carried its campaign when it was triggered; None before that."""

    def __init__(
        self,
        job: AssayExperiment,
        flow_run_id: str | None,
        order_key: str,
        *,
        earlier_end: str | None = None,
    ) -> None:
        self.job = job
        self.flow_run_id = UUID(flow_run_id) if flow_run_id else None
        self.order_key = order_key
        self._earlier_end = earlier_end  # the record of the end that the new run goes on from

    def wait_for_completion(self, longest_wait: timedelta | None = None) -> None:  # type: ignore[override] # Prefect's is asynchronous
        """Wait until the campaign is over, for days if need be. In async code call it with `asyncio.to_thread`.

        An archive that does not answer for a while is asked again.

        Raises:
            JobFailed: it is over without complete results, or was canceled; the message says why.
            Overdue: timed out; the experiment is still running, and waiting again is safe.
        """
        for pause_seconds in self._pauses(longest_wait):
            if self._is_over():
                return
            time.sleep(pause_seconds)

    def fetch_result(self) -> ExperimentResults:  # type: ignore[override]
        """Read the newest archived results, preliminary ones included.

        Raises:
            NotReady: nothing is archived yet.
            ArchiveError: the archive cannot be read, or has changed.
        """
        experiment_id = self._read_experiment_id()
        archived = latest_by_experiment(
            self.job.account.archive.get_store(), self.job.account.archive.prefix, self.job.campaign_id
        )
        version = archived.get(experiment_id) if experiment_id else None
        if version is None:
            raise NotReady(f"experiment {self.order_key} has nothing in the archive yet")
        manifest = version.manifest
        return ExperimentResults(
            experiment_id=manifest.experiment_id,
            experiment_code=manifest.experiment_code,
            campaign_id=manifest.campaign_id,
            results_status=manifest.results_status,
            version=manifest.version,
            location=version.location,
            rows=from_csv(version.read(TABLE_PATH)),
        )

    def _read_experiment_id(self) -> str | None:
        """The experiment of the order, by its ledger."""
        archive = self.job.account.archive
        service = normalize_address(self.job.account.credentials.base_url)
        ledgers = Ledgers.find_recorded(archive.get_store(), archive.prefix, service)
        state = ledgers.open_order(self.job.campaign_id, self.order_key).read() if ledgers else None
        return state.ordered.experiment_id if state and state.ordered else None

    def _is_over(self) -> bool:
        try:
            state = _open_log(self.job).read()
        except ArchiveUnavailable:
            return False
        if self._has_ended(state):
            return True
        if not state.is_open and (reason := self._why_not_begun()):
            if self._has_ended(_open_log(self.job).read()):  # it began and ended between the two readings
                return True
            raise JobFailed(reason)
        return False

    def _has_ended(self, state: CampaignState) -> bool:
        """Whether the log says that the campaign is over; JobFailed if that is without complete results."""
        campaign_id = self.job.campaign_id
        if state.stopped is not None:
            raise JobFailed(
                f"campaign {campaign_id} was canceled by {state.stopped.person}; only a person opens it again, with "
                "prefect-assay run --reopen"
            )
        if state.over is None or state.over.id == self._earlier_end:
            return False
        if not state.over.complete:
            raise JobFailed(f"campaign {campaign_id} is over without complete results: {state.over.words}")
        return True

    def _why_not_begun(self) -> str | None:
        """Why no campaign is to be expected of the flow run; None while it may still begin. No log exists before that."""
        if self.flow_run_id is None:
            return None
        again = "nothing was ordered by it; trigger the job again"
        with get_client(sync_client=True) as client:
            try:
                run = client.read_flow_run(self.flow_run_id)
            except ObjectNotFound:
                return f"the flow run {self.flow_run_id} was deleted before it began its campaign: {again}"
        if run.state is None or not run.state.is_final():
            return None
        return f"flow run {run.name} is {run.state.name} and did not begin its campaign: {run.state.message}; {again}"

    def _pauses(self, longest_wait: timedelta | None) -> Iterator[float]:
        end = time.monotonic() + longest_wait.total_seconds() if longest_wait is not None else None
        for attempt in count():
            yield min(_FIRST_PAUSE_SECONDS * _PAUSE_FACTOR ** min(attempt, 20), _LONGEST_PAUSE_SECONDS)
            if end is not None and time.monotonic() >= end:
                raise Overdue(f"experiment {self.order_key} has not ended within {longest_wait}; wait again")


def _open_log(job: AssayExperiment) -> CampaignLog:
    return CampaignLog(job.account.archive.get_store(), job.account.archive.prefix, job.campaign_id)


def _make_plan(job: AssayExperiment) -> Plan:
    with job.account.credentials.get_client() as client:
        target = resolve_target(client, job.assay)
    reading = job.options.reading
    sequences = read_sequences(job.designs, reading=reading)
    plan = split_into_experiments(
        sequences,
        job.assay,
        target,
        campaign_id=job.campaign_id,
        per_experiment=_SEQUENCES_MAX,
        reading=reading,
    )
    if len(plan.experiments) != 1:
        raise InvalidSpec(
            [
                f"designs: they need {len(plan.experiments)} experiments; trigger one job for each, or start a campaign"
            ]
        )
    return plan


def _make_parameters(job: AssayExperiment) -> dict[str, Any]:
    """The parameters of the flow `campaign`, which reads the plan from the archive; the others keep their defaults."""
    values = {
        name: getattr(job, name) for name in ("assay", "account", "spend_up_to_usd", "campaign_id", "options")
    }
    return {
        "designs": campaign_address(job.campaign_id),
        **{name: value for name, value in values.items() if value is not None},
    }
