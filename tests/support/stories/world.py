"""One installation, and the stories that are played in it: each with an organization, an archive and blocks of its own."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterTags,
)
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.exceptions import ObjectNotFound
from prefect.settings import temporary_settings
from typer.testing import CliRunner

from assay_lab.control.client import LabOrganization
from assay_lab.rails.x402 import X402Settings
from prefect_assay.archive.store import Store
from prefect_assay.blocks import (
    AssayAccount,
    AssayCredentials,
    LocalArchive,
    S3Archive,
    SharedPaymentTokens,
    SpendingPolicy,
    WebhookEndpoint,
    X402Wallet,
)
from prefect_assay.campaigns.runs.tags import CAMPAIGN_TAG, LOOP_TAG
from prefect_assay.local.processes import read_tail
from prefect_assay.orders.ledger.campaign_log import CampaignLog, CampaignState, StartedKind
from prefect_assay.orders.ledger.order_ledger import Ledgers, OrderLedger
from support.accounts import AMOUNT_USD, flow_parameters, make_account, reference
from support.archive.swift_server import ACCESS_KEY, SECRET_KEY, s3_client
from support.crash.process import Execution, token_issuer
from support.runs.sweeps import swept
from support.runs.world import EGFR, WALLET_KEY, eventually
from support.stories.stack import HomeStack, StoryStack, apply_deployments, running

DESIGNS: Final = {
    "one": "SESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE",
    "two": "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR",
}
AFFINITY: Final = {"experiment_type": "affinity", "method": "bli", "target": EGFR}
CAPS: Final = {
    "per_experiment_usd": 20_000,
    "per_campaign_usd": 50_000,
    "rolling_usd": 10**8,
    "accept_quotes": True,
    "machine_payments": True,
}
ALIVE: Final = frozenset({StateType.SCHEDULED, StateType.PENDING, StateType.RUNNING, StateType.CANCELLING})
OVER: Final = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")
SECONDS: Final = 240.0  # until anything that is waited for is given up; a busy machine is slow


def fasta(designs: Mapping[str, str]) -> str:
    """A file with these designs."""
    return "".join(f">{name}\n{residues}\n" for name, residues in designs.items())


@dataclass
class World:
    """A running installation."""

    stack: StoryStack
    api: SyncPrefectClient
    settings: dict[Any, Any]
    folder: Path
    issuer_url: str
    s3_url: str = ""  # of the S3 server, once a story has one
    ahead: timedelta = timedelta()  # of the sweeps that were played later than it is

    @contextmanager
    def story(self, name: str, **options: Any) -> Iterator["Story"]:
        """One story; its blocks are deleted at its end, so that later sweeps have nothing to do with it."""
        with ExitStack() as ends:
            try:
                yield Story(self, name, ends=ends, **options)
            except BaseException:
                with suppress(Exception):  # the story's own failure is the one to tell
                    self.clear()
                raise

    def clear(self) -> None:
        """After a story that failed: end its executions, start what it has stopped, delete its runs."""
        stack = self.stack
        stack.kill_runner()
        if not stack.running("server"):
            stack.start_server()
        if not stack.running("receiver"):
            stack.start_receiver()
        self.deploy()
        for run in self.api.read_flow_runs():
            if run.state is None or not run.state.is_final():
                self.api.delete_flow_run(run.id)
        stack.start_runner()

    def use_s3(self, address: str) -> None:
        """Have stories with the storage `s3` at this server, and executions spring traps at its requests."""
        self.s3_url = address
        self.stack.names[address] = "s3"
        self.stack.replace_worker()

    @contextmanager
    def served(self) -> Iterator[None]:
        """Flows run as users run them, in processes of Prefect's own runner, in place of the worker that forks."""
        self.stack.replace_worker(kind="serve")
        try:
            yield
        finally:
            self.stack.replace_worker()
            self.deploy()

    def deploy(self) -> None:
        """Make the deployments, as `prefect-assay deploy` does after an upgrade."""
        with self.here():
            apply_deployments()

    @contextmanager
    def here(self) -> Iterator[None]:
        """This process talks to this installation."""
        with temporary_settings(updates=self.settings):
            yield

    def command(self, *arguments: str, fails: bool = False) -> str:
        """One of the commands, in this process: starting one costs more than most of them do. Its output."""
        from prefect_assay.cli.app import app

        with self.here():
            done = CliRunner().invoke(app, arguments)
        assert (done.exit_code != 0) is fails, (arguments, done.exit_code, done.output, done.exception)
        return done.output

    def sweep(self, later_minutes: float = 0) -> str:
        """One sweep of the home, as its deployment runs it; one so much later than the last is played in this process."""
        if not later_minutes:
            return self.until_over(self.run_deployment("sweep")).state.message or ""
        self.ahead += timedelta(minutes=later_minutes)
        with self.here():
            return str(swept(after=self.ahead))

    def run_deployment(self, flow: str, **parameters: Any) -> FlowRun:
        """A new run of a deployment, with these parameters as the UI posts them."""
        deployment = self.api.read_deployment_by_name(f"{flow}/assay-{flow}")
        return self.api.create_flow_run_from_deployment(deployment.id, parameters=parameters)

    def read(self, run: FlowRun) -> FlowRun | None:
        """The run as it is now; None if it was deleted."""
        try:
            return self.api.read_flow_run(run.id)
        except ObjectNotFound:
            return None

    def until_over(self, run: FlowRun, seconds: float = SECONDS) -> FlowRun:
        """Wait until a run has come to its end."""
        return self.until(lambda: self._over(run), f"the end of {run.name}", seconds)

    def until(self, check: Callable[[], Any], what: str, seconds: float = SECONDS) -> Any:
        """Wait for a condition; what was waited for, the runs and the ends of the logs stand in the error."""
        try:
            return eventually(check, seconds=seconds, what=what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.describe()}") from None

    def describe(self) -> str:
        """The newest runs and the ends of the logs."""
        runs = self.api.read_flow_runs(limit=12)
        lines = [
            f"{run.name} {run.id} {sorted(run.tags)}: {run.state.name}: {run.state.message}" for run in runs
        ]
        return "\n".join(
            lines + [f"== {name}\n{read_tail(log, 40)}" for name, log in self.stack.logs.items()]
        )

    def _over(self, run: FlowRun) -> FlowRun | None:
        now = self.api.read_flow_run(run.id)
        return now if now.state and now.state.type.value in OVER else None


@dataclass
class Story:
    """A campaign of two experiments in an organization of its own, and everything that befalls it.

    Attributes:
        name: the campaign's id.
        rail: async_invoice, x402-exact or mpp-spt.
        storage: of the archive: folder, or s3 after `World.use_s3`.
        rounds: of a loop over a folder of files, each with its part of the designs; 0 for a campaign.
        policy: fields of the spending policy that differ from caps that nothing reaches.
        options: parameters of the flow that differ.
    """

    world: World
    name: str
    ends: ExitStack
    rail: str = "x402-exact"
    storage: str = "folder"
    rounds: int = 0
    policy: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    designs: dict[str, str] = field(default_factory=lambda: dict(DESIGNS))
    organization: LabOrganization | None = None
    # A run has its campaign's tag only once it has begun.
    started: list[FlowRun] = field(default_factory=list)

    def __post_init__(self) -> None:
        slug = re.sub("[^a-z0-9]", "", self.name) + uuid4().hex[:6]
        self.lab = self.organization or self.world.stack.lab.seed(slug)
        self.folder = self.world.folder / "archives" / self.name
        self.credentials = self.save_credentials()
        self.spending = self._save(SpendingPolicy(**(CAPS | self.policy)))
        self.archive = self._save(self._archive())
        self.wallet = self._save(self._wallet()) if self.rail != "async_invoice" else None
        self.webhook = self.save_webhook()
        self.account = self.save_account()
        self.http: httpx.Client = self.ends.enter_context(self.lab.http())

    def at(self, world: World) -> "Story":
        """The same campaign, looked after by another home."""
        return replace(self, world=world, organization=self.lab, started=[])

    # What a person does

    def parameters(self, **changes: Any) -> dict[str, Any]:
        """Those of the flow, as its form posts them."""
        campaign = {"designs": fasta(self.designs), "campaign_id": self.name}
        loop = {"loop_id": self.name, "max_rounds": self.rounds, "settle_seconds": 0}
        parameters = {
            **(loop | {"source": str(self.write_rounds())} if self.rounds else campaign),
            "assay": AFFINITY,
            "designs_per_experiment": 1,
            "account": reference(self.account),
            "spend_up_to_usd": AMOUNT_USD,
        }
        return flow_parameters(parameters | self.options | changes)

    def start(self, **changes: Any) -> FlowRun:
        """Start the campaign or the loop."""
        run = self.world.run_deployment(self.flow, **self.parameters(**changes))
        self.started.append(run)
        return run

    def start_and_wait(self, **changes: Any) -> FlowRun:
        """Start the campaign, and wait until everything is ordered and its run is suspended."""
        return self.suspended(self.start(**changes))

    def save_account(self) -> AssayAccount:
        """Save the account of the story's blocks."""
        return self._save(
            make_account(
                credentials=self.credentials,
                policy=self.spending,
                archive=self.archive,
                wallet=self.wallet,
                webhook=self.webhook,
                payment_method=self.rail,
                owner="Ada",
            )
        )

    def save_credentials(self, **changes: Any) -> AssayCredentials:
        """Save the credentials with these fields."""
        fields = {"base_url": self.lab.base_url, "token": self.lab.token} | changes
        return self._save(AssayCredentials(**fields))

    def save_webhook(self) -> WebhookEndpoint:
        """Save the endpoint's block with the receiver's present signing key."""
        stack = self.world.stack
        return self._save(WebhookEndpoint(url=stack.receiver_url, signing_key=stack.signing_key))

    def delete_block(self, block: Any) -> None:
        """Delete a saved block."""
        document = self.world.api.read_block_document_by_name(self.block_name, block.get_block_type_slug())
        self.world.api.delete_block_document(document.id)

    def cancel(self, run: FlowRun) -> None:
        """Press Cancel on the run's page."""
        self.world.api.set_flow_run_state(run.id, State(type=StateType.CANCELLING))

    def asks(self, run: FlowRun) -> bool:
        """Whether a run waits for the answer in Prefect's form."""
        state = self.world.api.read_flow_run(run.id).state
        return bool(state and state.state_details.run_input_keyset)

    def answer_form(self, run: FlowRun, **values: Any) -> str:
        """Fill in the form of a suspended run, as the UI does; whether Prefect accepts it."""
        return self.world.api.resume_flow_run(run.id, run_input=values).status.value

    def answer(self, command: str, *, cents_more: int = 0, fails: bool = False) -> None:
        """Answer the first open question by the command `approve` or `reject`, and wait for what follows."""
        asked = self.first_question()
        names = ["--question", asked.question_id, "--revision", str(asked.revision), "--yes"]
        if command == "approve" and asked.question.amount_cents is not None:
            names += ["--usd", f"{(asked.question.amount_cents + cents_more) / 100:.2f}"]
        self.world.command(command, self.name, *names, fails=fails)
        self.rest()

    def first_question(self) -> Any:
        """The first of the open questions; it is waited for."""
        return next(iter(self.world.until(lambda: self.state.open_questions, "a question").values()))

    def decide(self, action: str, **values: Any) -> FlowRun:
        """Fill in the form of the deployment `decide`, and wait for its end."""
        run = self.world.run_deployment(
            "decide", campaign_id=self.name, action=action, person="Ada", **values
        )
        return self.world.until_over(run)

    def pay_invoices(self) -> None:
        """Pay the open invoices on their pages."""
        for invoice in self.get("/invoices", limit=100)["items"]:
            if invoice["status"] == "open":
                address = invoice["provider_hosted_invoice_url"].rstrip("/")
                assert httpx.post(f"{address}/pay", follow_redirects=True).is_success

    # What befalls it

    def kill_at(self, point: str) -> None:
        """The next execution that comes to this point (a pattern) dies by SIGKILL there."""
        self._trap("kill", point)

    @contextmanager
    def held_at(self, point: str) -> Iterator[Callable[[], None]]:
        """The next execution that comes to this point waits there till the end; the value waits for it."""
        trap = self._trap("hold", point)
        sprung = trap.with_name(f"sprung-{trap.name}")
        try:
            yield lambda: self.world.until(sprung.exists, f"an execution at {point}")
        finally:
            trap.unlink(missing_ok=True)
            sprung.unlink(missing_ok=True)

    def all_traps_sprung(self) -> bool:
        """Whether every trap was reached."""
        return not list(self.world.stack.traps.glob("[kh]*"))

    def remove_traps(self) -> int:
        """Remove the traps that were not reached; how many."""
        left = list(self.world.stack.traps.glob("[kh]*"))
        for trap in left:
            trap.unlink()
        return len(left)

    def executions(self, run: FlowRun) -> list[Execution]:
        """What each execution of a run has reached, the oldest first."""
        traces = (self.world.stack.traps / "traces").glob(f"*-{run.id}")
        return [
            Execution.traced(0, trace) for trace in sorted(traces, key=lambda trace: trace.stat().st_mtime)
        ]

    def carry_on(self) -> None:
        """What a person does meanwhile: starts what died before its log began, answers questions, and pays invoices."""
        self.rest()
        if self.state.started is None:
            self.start()
            self.rest()
        while self.state.open_questions:
            asked = self.first_question()
            if "pay_again" in asked.question.decisions:
                self.decide("pay again", question_id=asked.question_id, revision=asked.revision)
                self.rest()
            else:
                self.answer("approve")
        if self.rail == "async_invoice":
            self.pay_invoices()

    def pass_days(self, days: float) -> None:
        """Lab days pass, and whatever they wake comes to rest."""
        self.lab.advance(days=days)
        self.rest()

    def sweep(self, *, later_minutes: float = 0) -> str:
        """One sweep, so much later, and what it has woken or started comes to rest."""
        report = self.world.sweep(later_minutes)
        self.rest()
        return report

    # What is waited for

    def suspended(self, run: FlowRun, seconds: float = SECONDS) -> FlowRun:
        """Wait until a run is suspended."""
        return self.in_state(run, "Suspended", seconds=seconds)

    def in_state(self, run: FlowRun, *names: str, seconds: float = SECONDS) -> FlowRun:
        """Wait until a run is in one of these states."""

        def reached() -> FlowRun | None:
            now = self.world.read(run)
            return now if now and now.state and now.state.name in names else None

        return self.world.until(reached, f"{run.name} to be {' or '.join(names)}", seconds)

    def rest(self) -> None:
        """Wait until no run of the campaign is executed or about to be."""

        def at_rest() -> bool:
            started = [run for one in self.started if (run := self.world.read(one))]
            return not [run for run in [*self.runs(), *started] if run.state.type in ALIVE]

        self.world.until(at_rest, f"the runs of {self.name} to rest")

    def finish(self, *, days: int = 21, step: int = 3, sweeps: bool = False) -> FlowRun:
        """Lab days pass until the campaign is over. Webhooks wake its run, unless there are sweeps, each half an hour later."""
        for _ in range(0, days, step):
            self.pass_days(step)
            if self.is_over:
                break
            if sweeps:
                self.sweep(later_minutes=30)
        self.world.until(lambda: self.is_over, f"{self.name} to be over")
        self.rest()
        return self.runs()[-1]

    @property
    def is_over(self) -> bool:
        """Whether the campaign's log says that it is over."""
        return self.state.over is not None

    # What there is to see

    @property
    def store(self) -> Store:
        """The archive."""
        return self.archive.get_store()

    @property
    def experiments(self) -> int:
        """How many are planned."""
        return -(-len(self.designs) // self.options.get("designs_per_experiment", 1))

    @property
    def flow(self) -> str:
        """What is started."""
        return "design-build-test" if self.rounds else "campaign"

    @property
    def log(self) -> CampaignLog:
        """The log of the campaign, or of the loop."""
        kind = StartedKind.LOOP if self.rounds else StartedKind.CAMPAIGN
        return CampaignLog(self.store, self.archive.prefix, self.name, kind)

    @property
    def state(self) -> CampaignState:
        """What the campaign's log says."""
        return self.log.read()

    def ledgers(self) -> list[OrderLedger]:
        """The ledgers of the archive's orders."""
        return [
            ledger
            for ledgers in Ledgers.list_all(self.store, self.archive.prefix)
            for ledger in ledgers.list_orders()
        ]

    def runs(self, *states: str) -> list[FlowRun]:
        """The campaign's runs, oldest first; only those in these states, if any are named."""
        tag = LOOP_TAG if self.rounds else CAMPAIGN_TAG
        tagged = FlowRunFilter(tags=FlowRunFilterTags(all_=[f"{tag}{self.name}"]))
        runs = self.world.api.read_flow_runs(flow_run_filter=tagged)
        chosen = [run for run in runs if not states or (run.state and run.state.name in states)]
        return sorted(chosen, key=lambda run: run.created)

    def get(self, path: str, **query: Any) -> Any:
        """What the service answers; not by the product's client, which is judged as well."""
        answer = self.http.get(path, params=query)
        answer.raise_for_status()
        return answer.json()

    def orders(self) -> list[Any]:
        """The experiments of the organization."""
        return list(self.get("/experiments", limit=100)["items"])

    def settlements(self) -> list[Any]:
        """The payments of the organization's invoices in the lab's records."""
        ids = {order["id"] for order in self.orders()}
        return [row for row in self.world.stack.lab.settlements() if row["experiment_id"] in ids]

    def requests(self, method: str, path: str) -> list[Any]:
        """Handled requests of this organization to the service; `path` is a pattern with `*`."""
        return [entry for entry in self.lab.journal(method=method, path=path) if entry["status"] is not None]

    def script_wallet(self) -> dict[str, Any]:
        """The fields of the wallet of x402-exact, for a process without blocks."""
        rail = X402Settings()
        networks = {"networks": [rail.network], "assets": [rail.asset], "pay_to": [rail.pay_to]}
        return {"private_key": WALLET_KEY, **networks}

    def write_rounds(self) -> Path:
        """A folder with a file for each round of a loop."""
        source = self.world.folder / "sources" / self.name
        source.mkdir(parents=True, exist_ok=True)
        names = list(self.designs)
        per_round = len(names) // self.rounds
        for number in range(self.rounds):
            part = names[number * per_round : (number + 1) * per_round]
            path = source / f"round-{number + 1}.fasta"
            path.write_text(fasta({name: self.designs[name] for name in part}))
        return source

    # Its blocks

    @property
    def block_name(self) -> str:
        """The name of each of its blocks."""
        return f"story-{self.name}"

    def _save(self, block: Any) -> Any:
        with self.world.here():
            block.save(self.block_name, overwrite=True)
        if self.organization is None:  # what another home has goes with it
            self.ends.callback(self._forget, block)
        return block

    def _forget(self, block: Any) -> None:
        with suppress(ObjectNotFound):
            self.delete_block(block)

    def _archive(self) -> LocalArchive | S3Archive:
        if self.storage == "folder":
            return LocalArchive(root=str(self.folder))
        keys = {"access_key_id": ACCESS_KEY, "secret_access_key": SECRET_KEY}
        s3_client(self.world.s3_url).create_bucket(Bucket=self.lab.slug)
        return S3Archive(bucket=self.lab.slug, endpoint_url=self.world.s3_url, region="us-east-1", **keys)

    def _wallet(self) -> X402Wallet | SharedPaymentTokens:
        if self.rail == "mpp-spt":
            return SharedPaymentTokens(
                issuer_url=self.world.issuer_url,
                issuer_key="key",
                network_ids=[self.world.stack.lab.rail("mpp-spt")["network_id"]],
            )
        return X402Wallet(**self.script_wallet())

    def _trap(self, kind: str, point: str) -> Path:
        """At its file's place in one step: an execution must not read half a pattern."""
        trap = self.world.stack.traps / f"{kind}-{uuid4().hex[:8]}"
        part = trap.with_name(f"part-{trap.name}")
        part.write_text(point)
        part.rename(trap)
        self.ends.callback(trap.unlink, missing_ok=True)
        return trap


@contextmanager
def a_world(folder: Path, env: dict[str, str] | None = None) -> Iterator[World]:
    """Start everything, and stop everything at the end."""
    with ExitStack() as ends:
        issuer_url = ends.enter_context(token_issuer())
        names = {issuer_url: "issuer", str(folder / "archives"): "archive"}
        stack = StoryStack(folder / "stack", names=names, env=env)
        settings = ends.enter_context(running(stack, folder))
        api = ends.enter_context(get_client(sync_client=True))
        yield World(stack, api, settings, folder, issuer_url)


@contextmanager
def another_home(world: World, folder: Path) -> Iterator[World]:
    """A second Prefect server with a worker and a database of its own, at the same lab and archives."""
    stack = HomeStack(folder / "stack", names=world.stack.names)
    stack.lab = world.stack.lab
    with ExitStack() as ends:
        with ExitStack() as made:
            settings = made.enter_context(running(stack, folder))
            api = made.enter_context(get_client(sync_client=True))
            ends.push(made.pop_all())
        with temporary_settings(updates=world.settings):
            yield World(stack, api, settings, world.folder, world.issuer_url, world.s3_url)
