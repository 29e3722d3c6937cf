"""Plays schedules with the whole flow, and is all that surrounds a flow run.

Around a real run are: the sweep, which starts another run in place of one that has died; the laboratory; whatever wakes
a suspended run; and, for some schedules, a second Prefect server with the same archive, at which the campaign is started
again when the first one has lost its database. No deployment is served: this plays all of them, so that it knows what
happens when.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Final

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun
from prefect.settings import PREFECT_API_URL, PREFECT_HOME, temporary_settings

from prefect_assay.blocks import S3Archive, SharedPaymentTokens, SpendingPolicy
from prefect_assay.blocks.order_ledger import open_books
from prefect_assay.campaigns.approval.answers import answer_question
from prefect_assay.local.environment import StackDatabase, free_ports
from prefect_assay.local.loopback import HOST
from prefect_assay.local.postgres_host import FOLDER_SETTING
from prefect_assay.local.processes import Child
from prefect_assay.orders.identity import order_key
from prefect_assay.orders.ledger import OrderBook
from prefect_assay.orders.ledger.campaign_log import CampaignLog
from prefect_assay.orders.question import QuestionKind
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.spec import ExperimentSpec
from support.accounts import AMOUNT_USD, make_account, save_account
from support.archive.moto_s3 import bucket_address
from support.crash.process import KILLED, Execution, Killable, token_issuer
from support.crash.story import PROBLEM, End, Kill, Schedule
from support.runs.world import EGFR, UNPRICED, World, healthy, start_run

DESIGN: Final = "SESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE"
TARGETS: Final = {"self-service": EGFR, "quoted": UNPRICED}
_QUESTIONS: Final = {
    QuestionKind.SPENDING: "approve",
    QuestionKind.PAYMENT_OUTCOME: "doubt",
    QuestionKind.ORDER_AGAIN: "approve",
}
_ERROR: Final = re.compile(r"exception: (\w+)")


@dataclass
class Server:
    """One Prefect server: its API, the blocks that are saved there, and the process that runs its flows."""

    api: SyncPrefectClient
    settings: dict[Any, Any]
    blocks: dict[str, Any]
    process: Killable


@dataclass
class Job:
    """A campaign of one order: its run on each server that knows it, and the server at which it goes on."""

    schedule: Schedule
    at: int = 0
    runs: dict[int, FlowRun] = field(default_factory=dict)


@dataclass
class FlowPlayer:
    """A world whose flows run only where and as far as the test lets them."""

    world: World
    servers: list[Server]
    targets: dict[str, str]

    def __post_init__(self) -> None:
        self.lab = self.world.stack.lab
        self.service: AssayClient = self.world.service

    @property
    def process(self) -> Killable:
        return self.servers[0].process

    def start(self, schedule: Schedule, at: int = 0) -> Job:
        """A new run of the deployment that nobody serves."""
        job = Job(schedule, at)
        self._start(job)
        return job

    def _start(self, job: Job) -> None:
        schedule, server = job.schedule, self.servers[job.at]
        blocks = server.blocks
        job.runs[job.at] = start_run(
            server.api,
            "campaign/crash",
            {
                "designs": f">design\n{DESIGN}\n",
                "assay": {"experiment_type": "affinity", "method": "bli", "target": TARGETS[schedule.route]},
                "campaign_id": schedule.campaign_id,
                "account": blocks[f"account-{schedule.rail}-{schedule.archive}-{schedule.show_quotes}"],
                "spend_up_to_usd": AMOUNT_USD,
            },
        )

    def spec(self, schedule: Schedule) -> ExperimentSpec:
        return ExperimentSpec.model_validate(
            {
                "experiment_type": "affinity",
                "method": "bli",
                "target_id": self.targets[schedule.route],
                "sequences": {"design": {"aa_string": DESIGN}},
            }
        )

    def execute(self, job: Job, kill: Kill | None, process: Killable | None = None) -> Execution:
        """One process on this run; killed at the point of this number."""
        where = process or self.servers[job.at].process
        return where.execute(flow_run_id=str(job.runs[job.at].id), kill=kill)

    def look(self, job: Job, done: Execution) -> tuple[End, str, str]:
        """By the run's state and the campaign's log: a run may have got further than its process."""
        state = self.run(job).state
        if state.is_completed():
            return End.DONE, "", ""
        if state.is_failed():
            return End.FAILED, (_ERROR.findall(state.message) or ["an error"])[0], state.message
        if state.is_paused():
            campaign = self.campaign(job.schedule).read()
            for asked in campaign.open_questions.values():
                return End.ASKS, _QUESTIONS.get(asked.question.kind, str(asked.question.kind)), ""
            problems = [shown.problem for shown in campaign.shown.values() if shown.problem]
            if problems:  # the run waits on, and its message says what keeps the order where it is
                return End.FAILED, (done.errors or (PROBLEM,))[-1], problems[0]
            return End.WAITS, "", ""
        log = self.servers[job.at].process.log_tail
        assert done.code == KILLED, f"{state!r} after {done.code}: {log()}"
        return End.KILLED, "", ""

    def run(self, job: Job) -> FlowRun:
        """The run as it is now, at the server at which it goes on."""
        return self.servers[job.at].api.read_flow_run(job.runs[job.at].id)

    def again(self, job: Job, schedule: Schedule, end: End) -> Job:
        """A wake-up, or another run in place of one that is over: by the sweep, or by a person at another server."""
        if end is End.KILLED and schedule.other_server and len(self.servers) > 1:
            # The first server has lost its database; killed there as well, the run goes on at the first, restored.
            job.at = 1 - job.at
        elif self.run(job).state.is_paused():
            self.servers[job.at].api.resume_flow_run(job.runs[job.at].id)
            return job
        self._start(job)
        return job

    def answer(self, job: Job, decision: str) -> bool:
        """As the form in the UI sends it, or the command; and the run is woken."""
        server, run = self.servers[job.at], self.run(job)
        if run.state.state_details.run_input_keyset:
            return server.api.resume_flow_run(run.id, run_input={"decision": decision}).status == "ACCEPT"
        log = self.campaign(job.schedule)
        asked = next(iter(log.read().open_questions.values()))
        if decision not in asked.question.decisions:
            return False
        schedule = job.schedule
        account = f"account-{schedule.rail}-{schedule.archive}-{schedule.show_quotes}"
        with temporary_settings(updates=server.settings):
            answer_question(
                server.blocks[account],
                log,
                question_id=asked.question_id,
                revision=asked.revision,
                decision=decision,
                amount_cents=asked.question.amount_cents,
                person="the crash test",
                how="a test",
            )
        return True

    def known(self, job: Job) -> set[str]:
        """As `status` shows them; a run that still waits also needs them as tags, by which it is woken."""
        run = self.run(job)
        if run.state.is_completed():
            return {one.experiment_id for one in self.campaign(job.schedule).read().shown.values()}
        return {t.removeprefix("assay-experiment:") for t in run.tags if t.startswith("assay-experiment:")}

    def campaign(self, schedule: Schedule) -> CampaignLog:
        """The log of the campaign."""
        archive = self.servers[0].blocks[schedule.archive]
        return CampaignLog(archive.get_store(), archive.prefix, schedule.campaign_id)

    def log(self, schedule: Schedule) -> OrderBook:
        """In the archive, as the runs have it."""
        blocks = self.servers[0].blocks
        key = order_key(schedule.campaign_id, 0, self.spec(schedule))
        return open_books(blocks["credentials"], blocks[schedule.archive]).open_order(
            schedule.campaign_id, key
        )


@contextmanager
def a_flow_player(world: World, folder: Path) -> Iterator[FlowPlayer]:
    """On top of a world: a second server, a bucket, deployments that nobody serves, processes that fork."""
    lab = world.stack.lab
    lab.plan(quote_minutes=1, review_minutes=1, window_days=0.01)
    served = world.api.read_deployment_by_name("campaign/assay-campaign")
    with ExitStack() as stack:
        issuer_url = stack.enter_context(token_issuer())
        endpoint, bucket = stack.enter_context(bucket_address("crash"))
        other = stack.enter_context(another_home(world, folder / "other"))
        names = {
            lab.base_url: "lab",
            issuer_url: "issuer",
            endpoint: "s3",
            str(world.folder / "archive"): "archive",
        }
        servers = []
        for number, (api_url, home) in enumerate(
            [(world.stack.api_url, world.folder / "client-home"), (other, folder / "other")]
        ):
            settings = {PREFECT_API_URL: api_url, PREFECT_HOME: home}
            with temporary_settings(updates=settings):
                api = stack.enter_context(get_client(sync_client=True))
                blocks = _blocks(world, issuer_url, endpoint, bucket)
                flow_id = api.create_flow_from_name("campaign")
                api.create_deployment(
                    flow_id=flow_id,
                    name="crash",
                    entrypoint=served.entrypoint,
                    path=served.path,
                    parameter_openapi_schema=served.parameter_openapi_schema,
                )
            env = {
                **world.stack.env,
                "PREFECT_LOGGING_TO_API_ENABLED": "false",
                "PREFECT_API_URL": api_url,
                "PREFECT_HOME": str(home),
            }
            place = folder / f"server-{number}"
            place.mkdir()
            names_here = names | {api_url.removesuffix("/api"): "prefect"}
            process = stack.enter_context(Killable(place, env, names_here))
            servers.append(Server(api, settings, blocks, process))
        targets = {t.name: t.id for t in world.service.targets.iterate()}
        yield FlowPlayer(
            world=world,
            servers=servers,
            targets={route: targets[name] for route, name in TARGETS.items()},
        )


@contextmanager
def another_home(world: World, home: Path) -> Iterator[str]:
    """A second Prefect server with a home of its own, which shares nothing with the first; its API address."""
    home.mkdir(parents=True)
    (port,) = free_ports(1)
    url = f"http://{HOST}:{port}/api"
    env = {name: value for name, value in world.stack.env.items() if name != "PREFECT_API_URL"}
    env |= {"PREFECT_HOME": str(home), "PREFECT_SERVER_UI_API_URL": url}
    env.pop("PREFECT_SERVER_DATABASE_CONNECTION_URL", None)
    env.pop(FOLDER_SETTING, None)  # root's databases do not lie in the home
    database = StackDatabase(env)
    child = Child(
        "other server",
        [sys.executable, "-m", "prefect_assay.cli", "server", "--host", HOST, "--port", str(port)],
        env=env,
        cwd=home,
        log=home / "server.log",
    )
    try:
        child.wait_until(lambda: healthy(url), seconds=120)
        yield url
    finally:
        child.stop()
        database.stop()
        database.discard()


def _blocks(world: World, issuer_url: str, endpoint: str, bucket: str) -> dict[str, Any]:
    """The blocks of one user, saved at the server at hand. Caps that nothing reaches."""
    network_id = world.stack.lab.rail("mpp-spt")["network_id"]
    made = {
        "credentials": world.credentials.model_copy(),
        "folder": world.archive.model_copy(),
        "s3": S3Archive(
            bucket=bucket,
            endpoint_url=endpoint,
            region="us-east-1",
            access_key_id="test",
            secret_access_key="test",
        ),
        "x402-exact": world.wallet.model_copy(),
        "mpp-spt": SharedPaymentTokens(issuer_url=issuer_url, issuer_key="key", network_ids=[network_id]),
    }
    for show_quotes in (True, False):
        made[f"policy-{show_quotes}"] = SpendingPolicy(
            per_experiment_cents=2_000_000,
            per_campaign_cents=5_000_000,
            machine_payments=True,
            rolling_cents=10**12,
            accept_quotes=not show_quotes,
        )
    for name, block in made.items():
        block.save(f"crash-{name}".lower(), overwrite=True)
    for rail, archive, show_quotes in product(("x402-exact", "mpp-spt"), ("folder", "s3"), (True, False)):
        account = make_account(
            credentials=made["credentials"],
            policy=made[f"policy-{show_quotes}"],
            archive=made[archive],
            wallet=made[rail],
            payment_method=rail,
        )
        name = f"account-{rail}-{archive}-{show_quotes}"
        made[name] = save_account(account, f"crash-{name}".lower())
    return made
