"""A Prefect home without workers, with campaigns that are started and swept in the test's own process.

Runs are made and moved through the API, as a worker would; nothing executes them. The archive, the logs and the sweep are
the real ones.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from prefect.blocks.core import Block
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun, State
from prefect.exceptions import ObjectNotFound
from prefect.logging import disable_run_logger
from prefect.states import Suspended

from prefect_assay.blocks import LocalArchive
from prefect_assay.blocks.block_references import as_parameter
from prefect_assay.campaigns.flow_results import SweepReport
from prefect_assay.campaigns.problems.problem import AlertLimits
from prefect_assay.campaigns.runs.looks import Look
from prefect_assay.campaigns.runs.queries import ASSAY_TAG
from prefect_assay.campaigns.runs.tags import CAMPAIGN_TAG, LOOP_TAG
from prefect_assay.campaigns.runs.variables import home_id
from prefect_assay.campaigns.sweep.watermarks import SweepState
from prefect_assay.flows.sweep import _Sweep
from prefect_assay.orders.ledger import Ledgers
from prefect_assay.orders.ledger.campaign_log import (
    CampaignLog,
    Ran,
    Started,
    StartedKind,
)
from prefect_assay.orders.payments.interfaces import normalize_address
from support.accounts import make_account
from support.campaign_logs import started

FLOWS = {StartedKind.CAMPAIGN: "campaign", StartedKind.LOOP: "design-build-test"}
ASSAY = {"experiment_type": "thermostability"}
SELDOM = 10_000  # minutes between two full checks
# Nothing listens there, so an account leads nowhere unless a test gives it an address.
NOWHERE = "http://127.0.0.1:9"


def swept(
    after: timedelta = timedelta(), minutes: int = SELDOM, limits: AlertLimits | None = None
) -> SweepReport:
    """A sweep so much later, with a full check every so many minutes; time must not go back between two of them."""
    with get_client(sync_client=True) as client, disable_run_logger():
        now = datetime.now(UTC) + after
        return _Sweep(client, SweepState.read(client), now, minutes, limits or AlertLimits()).run()


class SweptHome:
    """One home of one test: its blocks, its deployments, its campaigns. `close` removes all of it."""

    def __init__(
        self, api: SyncPrefectClient, folder: Path, *, base_url: str = NOWHERE, token: str = "t" * 30
    ) -> None:
        self.api, self.folder = api, folder
        self.slug = uuid4().hex[:8]
        self.id = home_id(api)
        self.blocks: dict[str, Any] = {}
        self.archive = LocalArchive(root=str(folder / f"archive-{self.slug}"))
        self.save("archive", self.archive)
        self.save("account", make_account(base_url=base_url, token=token, archive=self.archive))
        self.store = self.archive.get_store()
        self.ledgers = Ledgers.open(self.store, "", normalize_address(base_url), "org-1")
        assert self.ledgers.archive_id
        self.deployments = {what: self.deploy(what) for what in StartedKind}

    def save(self, parameter: str, block: Block) -> None:
        """Save a block of this home, again under the same name if it was deleted."""
        block.save(f"{parameter}-{self.slug}", overwrite=True)
        self.blocks[parameter] = block

    def delete(self, parameter: str) -> None:
        """Delete a block."""
        self.api.delete_block_document(self.blocks[parameter]._block_document_id)

    def deploy(self, what: StartedKind) -> UUID:
        """Make a deployment that nobody serves."""
        flow = self.api.create_flow_from_name(FLOWS[what])
        return self.api.create_deployment(
            flow, name=f"d-{self.slug}", tags=[ASSAY_TAG], enforce_parameter_schema=False
        )

    def name_of(self, parameter: str) -> str:
        """The `type/name` of a block."""
        return f"{self.blocks[parameter].get_block_type_slug()}/{parameter}-{self.slug}"

    def start(self, name: str, what: StartedKind = StartedKind.CAMPAIGN, **changes: Any) -> CampaignLog:
        """Record a start, as a deployed flow does."""
        log = CampaignLog(self.store, "", name, what)
        parameters = {"account": {"$block": self.name_of("account")}, "assay": ASSAY, f"{what}_id": name}
        service = normalize_address(self.blocks["account"].credentials.base_url)
        base = started(self.ledgers, name, what, experiments=1, service=service)
        made = {
            "parameters": parameters,
            "home": self.id,
            "deployment": f"{FLOWS[what]}/d-{self.slug}",
        }
        log.start(Started(**(base.model_dump(exclude={"id", "at", "by"}) | made | changes)))
        return log

    def run(
        self,
        log: CampaignLog,
        state: State[Any] | None = None,
        *,
        tags: tuple[str, ...] = (),
        noted: bool = True,
    ) -> FlowRun:
        """A run that carries a campaign, in a state; suspended until a look in six hours by default."""
        tag = (LOOP_TAG if log.what is StartedKind.LOOP else CAMPAIGN_TAG) + log.name
        run = self.api.create_flow_run_from_deployment(
            self.deployments[log.what],
            parameters={"account": as_parameter(self.blocks["account"]), "assay": ASSAY},
            tags=[tag, *tags],
        )
        self.set(run, state or asleep())
        if noted:
            log.note_run(str(run.id), run.name)
        return self.read(run)

    def set(self, run: FlowRun, state: State[Any]) -> None:
        """Put a run into a state, whatever it was in."""
        self.api.set_flow_run_state(run.id, state, force=True)

    def read(self, run: FlowRun) -> FlowRun:
        """The run as it is now."""
        return self.api.read_flow_run(run.id)

    def runs(self, log: CampaignLog) -> list[FlowRun]:
        """All runs of this home with the tag of a campaign, the oldest first."""
        account = as_parameter(self.blocks["account"])
        tag = (LOOP_TAG if log.what is StartedKind.LOOP else CAMPAIGN_TAG) + log.name
        flow_runs = [
            run
            for run in self.api.read_flow_runs(limit=200)
            if tag in run.tags and run.parameters["account"] == account
        ]
        return sorted(flow_runs, key=lambda run: run.created)

    def restarted(self, log: CampaignLog) -> list[Ran]:
        """The runs that a sweep has started, by the log."""
        return [
            run
            for run in CampaignLog(self.store, "", log.name, log.what).read().runs.values()
            if run.restarted
        ]

    def close(self) -> None:
        """Remove blocks and runs, so that the sweeps of later tests have nothing to do with this home."""
        for run in self.api.read_flow_runs(limit=200):
            self.api.delete_flow_run(run.id)
        for parameter in self.blocks:
            try:
                self.delete(parameter)
            except ObjectNotFound:
                continue


def asleep(after: timedelta = timedelta(hours=6)) -> State[Any]:
    """A suspension that looks again so much later."""
    look = Look(0, datetime.now(UTC) + after)
    return Suspended(timeout_seconds=90 * 86_400, pause_key=look.new_key(), message="waits")
