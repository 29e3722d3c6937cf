"""Starts another run for each open campaign or loop of this home that has no live run. It repairs no run.

The new run finds everything in the log and the ledgers, so a run that was taken for dead may go on at the same time.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.exceptions import ObjectNotFound
from prefect.states import Cancelled, Crashed

from prefect_assay.blocks.deployment_runs import find_deployment, make_missing_deployment_error, start_run
from prefect_assay.campaigns.problems.find import SILENT_AFTER
from prefect_assay.campaigns.runs.heartbeats import is_silent
from prefect_assay.campaigns.runs.queries import (
    ASSAY_FLOWS,
    UNFINISHED,
    is_assay_run,
    read_runs,
    run_filter,
)
from prefect_assay.campaigns.runs.states import (
    REPLACED,
    is_canceled_by_person,
    lost_its_deployment,
    set_state,
    was_stopped_with_its_runner,
)
from prefect_assay.campaigns.setup import ACCOUNT, BLOCK_KEY
from prefect_assay.campaigns.sweep.open_campaigns import OpenCampaign, began_last
from prefect_assay.errors import ConfigurationError, shortened
from prefect_assay.orders.ledger.campaign_log import (
    CampaignState,
    Ran,
    Started,
    StartedKind,
)

FIRST_PAUSE: Final = timedelta(minutes=5)  # after the first restart within a day; doubles with each
LONGEST_PAUSE: Final = timedelta(hours=6)
UNSTARTED: Final = timedelta(minutes=10)  # a run that is Pending or Cancelling for longer has no process
CONTINUED: Final = "Continued"  # the state of a run that has ended so that another one goes on
_DAY: Final = timedelta(days=1)
_FLOWS: Final = {StartedKind.CAMPAIGN: "campaign", StartedKind.LOOP: "design-build-test"}
_RUNS_MAX: Final = 20  # of a campaign, the newest; the earlier ones have ended long ago
_IDS_MAX: Final = 200  # of one request
_REASON_MAX: Final = 300


@dataclass
class LiveRuns:
    """The unfinished runs of this server that carry a campaign or a loop, read once in a sweep."""

    runs: dict[UUID, FlowRun] = field(default_factory=dict)

    @classmethod
    def read(cls, client: SyncPrefectClient) -> "LiveRuns":
        """All runs of our flows that have not ended; before the logs are read, which name runs that began later."""
        runs = read_runs(client, run_filter(states=UNFINISHED, deployed=True), ASSAY_FLOWS)
        return cls({run.id: run for run in runs if is_assay_run(run)})

    @property
    def suspended(self) -> list[FlowRun]:
        """Those that are suspended and carry a campaign or a loop."""
        return [run for run in self.runs.values() if run.state is not None and run.state.is_paused()]

    def end_dead(self, client: SyncPrefectClient, now: datetime, *, swept: datetime | None) -> list[FlowRun]:
        """Give runs without a process the end that nobody has reported, and forget them; returns them.

        Where the last sweep is long ago, the server may have been unreachable, and no heartbeat has come since: the next sweep looks.
        """
        was_silent = swept is None or now - swept > SILENT_AFTER
        dead = [
            run
            for run in self.runs.values()
            if (end := _end_of_dead(client, run, now, was_silent=was_silent))
            and set_state(client, run.id, end)
        ]
        for run in dead:
            del self.runs[run.id]
        return dead


def _end_of_dead(
    client: SyncPrefectClient, run: FlowRun, now: datetime, *, was_silent: bool
) -> State[Any] | None:
    """The end of a run without a process; None for any other."""
    state = run.state
    if state is None:
        return None
    age = now - state.timestamp
    if state.type is StateType.PENDING:
        return Crashed(message="it was pending, and never began") if age > UNSTARTED else None
    if state.type is StateType.CANCELLING:
        # The message tells a stopped runner from a person.
        return Cancelled(message=state.message) if age > UNSTARTED else None
    if was_silent or not is_silent(client, run, now):
        return None
    return Crashed(message="no heartbeat came; another run goes on")


@dataclass
class Restarts:
    """Restarts of one sweep: what it has read of deployments and runs, and why a campaign could not be started."""

    client: SyncPrefectClient
    live: LiveRuns
    now: datetime
    started: list[str] = field(default_factory=list)  # names of runs
    _deployments: dict[str, UUID | None] = field(default_factory=dict)

    def note_runs(self, campaigns: Iterable[OpenCampaign], ended: Iterable[FlowRun] = ()) -> None:
        """Note the runs that the logs name, as they are now, and those with a campaign's tag, `ended` ones included."""
        campaigns = list(campaigns)
        named = {UUID(run) for one in campaigns for run in list(one.state.runs)[-_RUNS_MAX:]}
        unknown = sorted(named - self.live.runs.keys())
        known = {run.id: run for run in (*ended, *self.live.runs.values())}
        for start in range(0, len(unknown), _IDS_MAX):
            part = unknown[start : start + _IDS_MAX]
            known |= {run.id: run for run in read_runs(self.client, run_filter(ids=part))}
        for campaign in campaigns:
            ids = [UUID(run) for run in campaign.state.runs]
            # Another archive may have a campaign of the same id.
            by_tag = [run for run in known.values() if run.id not in ids and campaign.is_carried_by(run)]
            campaign.runs = [*by_tag, *(known[run] for run in ids if run in known)]

    def live_run(self, campaign: OpenCampaign) -> FlowRun | None:
        """The run that goes on with it, or will when it is woken; None if there is none."""
        return next((run for run in reversed(campaign.runs) if self._is_live(campaign, run)), None)

    def _is_live(self, campaign: OpenCampaign, run: FlowRun) -> bool:
        if run.state is None or run.state.is_final():
            return False
        if run.state.is_running() or run.state.type in {StateType.PENDING, StateType.CANCELLING}:
            return True
        name = _deployment_name(campaign)
        # A run of a deployment that was deleted starts nowhere. A loop's round has no deployment of its own.
        return name is None or run.deployment_id == self._deployment(name)

    def _deployment(self, name: str) -> UUID | None:
        if name not in self._deployments:
            deployment = find_deployment(self.client, name)
            self._deployments[name] = deployment.id if deployment else None
        return self._deployments[name]

    def restart(self, campaign: OpenCampaign) -> FlowRun | None:
        """Start another run; None if it is too early, or the campaign's log has changed.

        Raises:
            ConfigurationError: a block or the deployment is missing, or Prefect refuses the parameters.
        """
        if not is_due(campaign.state, self.now) and not _is_continued(campaign):
            return None
        seen = campaign.state
        if campaign.log.read().count != seen.count:
            return None  # somebody else has begun, stopped or ended it meanwhile: the next sweep looks again
        started = deployed_start(campaign)
        if started is None or started.deployment is None:
            return None
        if self._deployment(started.deployment) is None:
            raise make_missing_deployment_error(started.deployment)
        run = start_run(
            started.deployment,
            parameters_of(self.client, started),
            name=f"{_run_name(campaign)} {len(seen.runs) + 1}",
            tags=[campaign.tag],
            idempotency_key=f"assay-{campaign.identity}-{len(seen.runs)}",
        )
        self._note(campaign, run)
        self._end_others(campaign, run)
        self.started.append(run.name)
        return run

    def _note(self, campaign: OpenCampaign, run: FlowRun) -> None:
        """Record the run as restarted, also where it was faster to record itself; once, of two sweeps."""
        restarted = not _is_continued(campaign)
        record = Ran(run=str(run.id), name=run.name, restarted=restarted, why=_explain_restart(campaign))
        while True:
            seen = campaign.log.read()
            known = seen.runs.get(record.run)
            if (known is not None and known.restarted == restarted) or campaign.log.append_unless_changed(
                record, seen
            ):
                return

    def _end_others(self, campaign: OpenCampaign, run: FlowRun) -> None:
        """Cancel what waits of the same campaign: two suspended runs would both be woken."""
        for other in campaign.runs:
            waits = other.state is not None and not other.state.is_final() and not other.state.is_running()
            if waits and other.id != run.id:
                set_state(self.client, other.id, Cancelled(message=REPLACED))


def is_restartable(campaign: OpenCampaign, home: str) -> bool:
    """Return True if this home looks after its runs: not for a round of a loop, whose run is the loop's."""
    if not campaign.state.is_open or campaign.state.home != home:
        return False
    name = _deployment_name(campaign)
    return name is not None and str(name.partition("/")[0]) == _FLOWS[campaign.log.what]


def deployed_start(campaign: OpenCampaign) -> Started | None:
    """The last start by a deployment: a start in a notebook, or with --here, since then changes nothing for the sweep."""
    last = campaign.state.started
    if last is None or last.deployment is not None:
        return last
    starts = [
        one for one in campaign.log.records() if isinstance(one, Started) and one.deployment is not None
    ]
    return starts[-1] if starts else None


def is_due(state: CampaignState, now: datetime) -> bool:
    """Return True if another run may be started: at once the first time within a day, then after growing pauses."""
    # Times ahead of this clock come from a wrong one.
    recent = [restart for restart in state.restarts if timedelta() <= now - restart < _DAY]
    began = began_last(state)
    if began is None or began > now:
        return True
    if recent:
        return now - max(recent) >= min(FIRST_PAUSE * (1 << min(len(recent) - 1, 10)), LONGEST_PAUSE)
    # A campaign without any run: the one that has started it is about to record itself.
    return bool(state.runs) or now - began > UNSTARTED


def canceled_run(campaign: OpenCampaign) -> FlowRun | None:
    """The run that a person has canceled since the campaign was last started or opened again; None without one."""
    canceled = [run for run in campaign.runs if is_canceled_by_person(run)]
    last = canceled[-1] if canceled else None
    if last is None or last.state is None:
        return None
    # No cancellation precedes the first start, whose clock may be another one.
    opened = [record.at for record in campaign.log.records() if record.kind in {"started", "reopened"}][1:]
    return last if not opened or last.state.timestamp > max(opened) else None


def parameters_of(client: SyncPrefectClient, started: Started) -> dict[str, Any]:
    """The recorded parameters for another run, with the reference of its account.

    Raises:
        ConfigurationError: the account does not exist.
    """
    return {**started.parameters, ACCOUNT: _make_reference(client, started.parameters.get(ACCOUNT))}


def _make_reference(client: SyncPrefectClient, value: Any) -> Any:
    slug, _, name = str(value[BLOCK_KEY]).partition("/")
    try:
        document = client.read_block_document_by_name(name, slug)
    except ObjectNotFound:
        raise ConfigurationError(
            f"its account {slug}/{name} was deleted; save an account under this name again"
        ) from None
    return {"$ref": {"block_document_id": str(document.id)}}


def _deployment_name(campaign: OpenCampaign) -> str | None:
    started = deployed_start(campaign)
    return started.deployment if started else None


def _is_continued(campaign: OpenCampaign) -> bool:
    last = _last_run(campaign)
    return last is not None and last.state is not None and last.state.name == CONTINUED


def _last_run(campaign: OpenCampaign) -> FlowRun | None:
    last = next(reversed(campaign.state.runs), None)
    return next((run for run in campaign.runs if str(run.id) == last), None)


def _run_name(campaign: OpenCampaign) -> str:
    return f"loop {campaign.log.name}" if campaign.log.what is StartedKind.LOOP else campaign.log.name


def _explain_restart(campaign: OpenCampaign) -> str:
    """What had become of the last run, for people."""
    if not campaign.state.runs:
        return "no run had recorded itself"
    run = _last_run(campaign)
    if run is None or run.state is None:
        return "its run was deleted"
    if was_stopped_with_its_runner(run.state):
        return "its run was stopped with its worker"
    if lost_its_deployment(run) or not run.state.is_final():
        return "its run belonged to a deployment that was deleted"
    if run.state.name == CONTINUED:
        return "its run had become long"
    reason = shortened(" ".join((run.state.message or "").split()), _REASON_MAX)
    return f"its run was {run.state.name}" + (f": {reason}" if reason else "")
