"""A whole installation for one test file: real Prefect server, lab, receiver and served flows, with saved blocks."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psutil
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    ArtifactFilter,
    ArtifactFilterFlowRunId,
)
from prefect.client.schemas.objects import FlowRun
from prefect.client.schemas.sorting import FlowRunSort
from prefect.events.worker import EventsWorker
from prefect.exceptions import PrefectException
from prefect.settings import (
    PREFECT_API_URL,
    PREFECT_HOME,
    PREFECT_LOCAL_STORAGE_PATH,
    PREFECT_LOGGING_TO_API_ENABLED,
    temporary_settings,
)
from pydantic import BaseModel

from assay_lab.rails.x402 import X402Settings
from prefect_assay.blocks import (
    AssayAccount,
    AssayCredentials,
    LocalArchive,
    SpendingPolicy,
    WebhookEndpoint,
    X402Wallet,
)
from prefect_assay.blocks.order_ledger import open_ledgers
from prefect_assay.cli.services.server import URL as DATABASE_URL
from prefect_assay.local.processes import read_tail
from prefect_assay.orders.ledger import OrderLedger
from prefect_assay.service.client import AssayClient
from support.accounts import AMOUNT_USD, flow_parameters, make_account, reference, save_account
from support.controlled_stack import ControlledStack
from support.runs.prefect_tables import fill

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

EGFR = "Human EGFR, extracellular domain"
UNPRICED = "Human insulin receptor, extracellular domain"
# Anvil's published first test key: worthless on purpose.
WALLET_KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"


def healthy(api_url: str) -> bool:
    """Whether a Prefect API answers."""
    with suppress(httpx.TransportError):
        return httpx.get(f"{api_url}/health", timeout=5).is_success
    return False


def eventually(check: Callable[[], T | None], *, seconds: float, what: str) -> T:
    """Poll until the check gives something true; fail with what was waited for."""
    deadline = time.monotonic() + seconds
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"gave up after {seconds} s waiting for {what}")
        time.sleep(0.25)


def start_run(api: SyncPrefectClient, deployment: str, parameters: Mapping[str, Any]) -> FlowRun:
    """A new run of a deployment, its blocks as references; parameters that are None are left out."""
    values = flow_parameters(parameters)
    if isinstance(account := values.get("account"), AssayAccount):
        values["account"] = reference(account if account.name else save_account(account))
    return api.create_flow_run_from_deployment(api.read_deployment_by_name(deployment).id, parameters=values)


@dataclass
class World:
    """A running stack with one user's blocks."""

    stack: ControlledStack
    folder: Path
    credentials: AssayCredentials
    policy: SpendingPolicy
    wallet: X402Wallet
    webhook: WebhookEndpoint
    archive: LocalArchive
    api: SyncPrefectClient
    service: AssayClient

    def designs(self, name: str, *residues: str) -> Path:
        """A FASTA file with one design per given string."""
        path = self.folder / f"{name}.fasta"
        path.write_text("".join(f">{name}-{n}\n{text}\n" for n, text in enumerate(residues, start=1)))
        return path

    def start(self, flow: str, **parameters: Any) -> FlowRun:
        """Start a deployed run; blocks are passed by reference."""
        return start_run(self.api, f"{flow}/assay-{flow}", parameters)

    def experiment(self, campaign_id: str, residues: str, **changes: Any) -> FlowRun:
        """Start a campaign of one experiment of one design."""
        return self.campaign(f">design\n{residues}\n", campaign_id=campaign_id, **changes)

    def shared(self) -> dict[str, Any]:
        """The parameters that all flows share, with payment by x402-exact."""
        return {
            "credentials": self.credentials,
            "policy": self.policy,
            "archive": self.archive,
            "payment_method": "x402-exact",
            "wallet": self.wallet,
            "webhook": self.webhook,
            "spend_up_to_usd": AMOUNT_USD,
        }

    def campaign(self, designs: Path | str, **changes: Any) -> FlowRun:
        """Start a campaign with this world's blocks, paid by x402-exact."""
        defaults = {
            "designs": str(designs),
            "assay": {"experiment_type": "affinity", "method": "bli", "target": EGFR},
        }
        parameters = self.shared() | defaults | changes
        return self.start("campaign", **{k: v for k, v in parameters.items() if v is not None})

    def run(self, run: FlowRun) -> FlowRun:
        """The run as it is now."""
        return self.api.read_flow_run(run.id)

    def result(self, run: FlowRun, model: type[M]) -> M:
        """A run's result; results are kept as JSON here, so that they can be searched."""
        value = self.run(run).state.result()
        return model.model_validate(value) if isinstance(value, dict) else value

    def until(self, run: FlowRun, *names: str, seconds: float = 180) -> FlowRun:
        """Wait until a run is in one of the named states."""

        def reached() -> FlowRun | None:
            now = self.run(run)
            return now if now.state and now.state.name in names else None

        try:
            return eventually(reached, seconds=seconds, what=f"{run.name} to be {' or '.join(names)}")
        except AssertionError as error:
            raise AssertionError(f"{error}; it is {self.run(run).state!r}") from None

    def asleep(self, run: FlowRun, seconds: float = 180) -> FlowRun:
        """Wait until a run is suspended and its flow process has ended; runs of other tests may go on."""

        def reached() -> bool:
            now = self.run(run)
            return bool(now.state and now.state.name == "Suspended") and not self.has_process(run)

        try:
            eventually(reached, seconds=seconds, what=f"{run.name} to be suspended without a process")
        except AssertionError as error:
            raise AssertionError(f"{error}; it is {self.run(run).state!r}") from None
        return self.run(run)

    def has_process(self, run: FlowRun) -> bool:
        """Whether a flow process of this run is alive."""
        for process in self.stack.runner_processes():
            with suppress(psutil.Error):
                if process.environ().get("PREFECT__FLOW_RUN_ID") == str(run.id):
                    return True
        return False

    def orders(self, campaign_id: str) -> list[Any]:
        """What the service has under a campaign's name, the judge of ordering once; `loop-` is every name that begins so.

        The search finds a word anywhere in a name, so `quoted` would find another test's `events-quoted`, and the
        beginning of a name alone another test's `quoted-twice`.
        """
        begins = campaign_id if campaign_id.endswith("-") else f"{campaign_id} "
        experiments = self.service.experiments.iterate(search=campaign_id)
        return [order for order in experiments if order.name.startswith(begins)]

    def log(self, campaign_id: str) -> OrderLedger:
        """The log of a campaign's first order."""
        ledgers = open_ledgers(self.credentials, self.archive)
        return next(ledger for ledger in ledgers.list_orders() if ledger.campaign_id == campaign_id)

    def journal(self) -> list[dict[str, Any]]:
        """Every request the lab has handled, oldest first."""
        return self.stack.lab.journal()

    def deliveries(self) -> list[dict[str, Any]]:
        """Every webhook delivery attempt of the lab, oldest first."""
        return self.stack.lab.deliveries()

    def creates(self) -> int:
        """How many orders have reached the service."""
        return sum(1 for r in self.journal() if r["method"] == "POST" and r["path"] == "/api/v1/experiments")

    def settlements(self, campaign_id: str) -> list[Any]:
        """The settlements of a campaign's invoices in the lab's own ledgers: the judge of paying once."""
        orders = {e.id for e in self.orders(campaign_id)}
        return [s for s in self.stack.lab.settlements() if s["experiment_id"] in orders]

    def pay_invoices(self, campaign_id: str) -> None:
        """Pay a campaign's open invoices on their pages, as a person does."""
        for order in self.orders(campaign_id):
            invoice = self.service.invoices.find_for_experiment(order.id)
            if invoice is not None and invoice.status == "open":
                address = invoice.provider_hosted_invoice_url.rstrip("/")
                assert httpx.post(f"{address}/pay", follow_redirects=True).is_success

    def save_documented_blocks(self) -> AssayAccount:
        """Save the account under the name that the pages of docs/ use."""
        parts = {name: getattr(self, name) for name in ("credentials", "policy", "archive")}
        return save_account(make_account(**parts), "main")

    def advance(self, days: float) -> None:
        """Let lab days pass, webhooks included."""
        self.stack.lab.advance(days=days)

    def fault(self, action: str, **values: Any) -> None:
        """Queue a fault of the lab."""
        self.stack.lab.fault(action, **values)

    def campaign_of(self, run: FlowRun) -> str | None:
        """The campaign id that a run has given itself."""
        tags = [t for t in self.run(run).tags if t.startswith("assay-campaign:")]
        return tags[0].removeprefix("assay-campaign:") if tags else None

    def history(self, run: FlowRun) -> list[str]:
        """The names of all states a run has been in, oldest first."""
        with get_client(sync_client=True) as client:
            states = client.read_flow_run_states(run.id)
        return [state.name or "" for state in sorted(states, key=lambda state: state.timestamp)]

    def how_it_stands(self) -> str:
        """The newest runs with their states, and the end of each log, for the report of a test that failed."""
        try:
            with get_client(sync_client=True) as client:
                runs = client.read_flow_runs(sort=FlowRunSort.EXPECTED_START_TIME_DESC, limit=12)
            lines = [f"{run.name}: {' > '.join(self.history(run))}; {run.state!r}" for run in runs]
        except (httpx.HTTPError, PrefectException) as error:
            lines = [f"Prefect's server does not answer: {error!r}"]
        return "\n".join(
            lines + [f"== {name}\n{read_tail(log, 40)}" for name, log in self.stack.logs.items()]
        )

    def artifacts(self, run: FlowRun, prefix: str) -> list[Any]:
        """A run's artifacts whose key starts with a prefix."""
        run_filter = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[run.id]))
        with get_client(sync_client=True) as client:
            records = client.read_artifacts(artifact_filter=run_filter)
        return [a for a in records if (a.key or "").startswith(prefix)]


@contextmanager
def a_world(
    folder: Path, *, stack_options: dict[str, Any] | None = None, lab_options: tuple[str, ...] = ()
) -> Iterator[World]:
    """Start a stack, its lab with these options, save blocks on its server, and stop everything at the end."""
    # Flow results are kept where the test can read them; users need not keep any.
    storage = {
        "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "true",
        "PREFECT_RESULTS_DEFAULT_SERIALIZER": "json",
        "PREFECT_LOCAL_STORAGE_PATH": str(folder / "results"),
    }
    options = stack_options or {}
    stack = ControlledStack(folder / "stack", **options | {"env": storage | options.get("env", {})})
    stack.lab._command += lab_options  # a stack of users needs none
    settings = {
        PREFECT_API_URL: stack.api_url,
        PREFECT_HOME: folder / "client-home",
        PREFECT_LOCAL_STORAGE_PATH: folder / "results",
        PREFECT_LOGGING_TO_API_ENABLED: False,  # its sender outlives the server and keeps the process waiting
    }
    _fill_database(stack, folder)
    with temporary_settings(updates=settings), stack:
        blocks = _saved_blocks(stack, folder)
        # One client of each kind for all the looking: making one costs more than a look.
        with get_client(sync_client=True) as api, blocks["credentials"].get_client() as service:
            yield World(stack=stack, folder=folder, api=api, service=service, **blocks)
        # Else they try for over a minute to reach this server while the next one of this process stops.
        EventsWorker.drain_all(timeout=10)


def _fill_database(stack: ControlledStack, folder: Path) -> None:
    database = None if DATABASE_URL in stack.env else stack.database.embedded
    if database:
        of_process = folder.parent
        fill(database, of_process.parent if "PYTEST_XDIST_WORKER" in os.environ else of_process)


def _saved_blocks(stack: ControlledStack, folder: Path) -> dict[str, Any]:
    rail = X402Settings()
    made = {
        "credentials": AssayCredentials(base_url=stack.lab.base_url, token=stack.lab.token),
        "policy": SpendingPolicy(
            accept_quotes=True,
            per_experiment_usd=20_000,
            per_campaign_usd=50_000,
            machine_payments=True,
            rolling_usd=500_000,
        ),
        "wallet": X402Wallet(
            private_key=WALLET_KEY,
            networks=[rail.network],
            assets=[rail.asset],
            pay_to=[rail.pay_to],
        ),
        "webhook": WebhookEndpoint(url=stack.receiver_url, signing_key=stack.signing_key),
        "archive": LocalArchive(root=str(folder / "archive")),
    }
    for name, block in made.items():
        block.save(f"test-{name}", overwrite=True)
    return made
