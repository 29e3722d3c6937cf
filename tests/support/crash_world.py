"""Plays schedules with the whole flow, and is all that stands around a flow run.

Around a real run stand: the runner, which notices a death and schedules the run again; time, which ends the
locks of the dead; the laboratory; and whatever wakes a suspended run. No deployment is served: this is all of
these itself, so that it knows what happens when.
"""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from prefect.client.schemas.actions import GlobalConcurrencyLimitUpdate
from prefect.client.schemas.objects import FlowRun
from prefect.client.schemas.responses import GlobalConcurrencyLimitResponse
from prefect.exceptions import ObjectNotFound
from prefect.states import Scheduled

from prefect_assay.blocks import SharedPaymentTokens, SpendingPolicy
from prefect_assay.client import AssayClient
from prefect_assay.waiting.runs import start_run
from support.crash_process import KILLED, Execution, Killable, token_issuer
from support.crash_story import End, Kill, Schedule
from support.world import EGFR, UNPRICED, World

DESIGN: Final = "SESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE"
TARGETS: Final = {"self-service": EGFR, "quoted": UNPRICED}
_PAGE: Final = 200
_ERROR: Final = re.compile(r"exception: (\w+)")


@dataclass
class FlowPlayer:
    """A world whose flows run only where and as far as the test lets them."""

    world: World
    process: Killable
    wallets: dict[str, Any]
    policies: dict[bool, SpendingPolicy]
    targets: dict[str, str]

    def __post_init__(self) -> None:
        self.lab = self.world.stack.lab
        self.service: AssayClient = self.world.service

    def start(self, schedule: Schedule) -> FlowRun:
        """A new run of the deployment that nobody serves."""
        spec = {
            "experiment_type": "affinity",
            "method": "bli",
            "target_id": self.targets[schedule.route],
            "sequences": {"design": {"aa_string": DESIGN}},
        }
        return start_run(
            "experiment/crash",
            {
                "spec": spec,
                "campaign_id": schedule.campaign_id,
                "credentials": self.world.credentials,
                "policy": self.policies[schedule.show_quotes],
                "archive": self.world.archive,
                "payment_method": schedule.rail,
                "wallet": self.wallets[schedule.rail],
            },
        )

    def execute(self, job: FlowRun, kill: Kill | None) -> Execution:
        """One process on this run; killed at the point of this number."""
        return self.process.execute(flow_run_id=str(job.id), kill=kill)

    def look(self, job: FlowRun, done: Execution) -> tuple[End, str, str]:
        """By the run's state: a run may have got further than its process."""
        state = self.world.run(job).state
        if state.is_completed():
            return End.DONE, "", ""
        if state.is_failed():
            return End.FAILED, _ERROR.findall(state.message)[0], state.message
        if state.is_paused():
            asks = state.state_details.run_input_keyset
            return (
                (End.ASKS, state.state_details.pause_key.partition("-")[0], "")
                if asks
                else (End.WAITS, "", "")
            )
        assert done.code == KILLED, f"{state!r} after {done.code}: {self.process.log_tail()}"
        return End.KILLED, "", ""

    def again(self, job: FlowRun, schedule: Schedule, end: End) -> FlowRun:
        """A wake-up, or what runner and automation do after a crash and a person after a failure."""
        if end is End.WAITS:
            self.world.api.resume_flow_run(job.id)
            return job
        self._locks_end()
        if end is End.KILLED and schedule.lose_results:
            shutil.rmtree(self.world.folder / "results", ignore_errors=True)
        if end is End.KILLED and schedule.fresh_run:
            return self.start(schedule)
        self.world.api.set_flow_run_state(job.id, Scheduled(name="AwaitingRetry"), force=True)
        return job

    def answer(self, job: FlowRun, decision: str) -> bool:
        """As the form in the UI sends it."""
        return self.world.api.resume_flow_run(job.id, run_input={"decision": decision}).status == "ACCEPT"

    def known(self, job: FlowRun) -> set[str]:
        """By the run's tags, which the UI shows."""
        tags = self.world.run(job).tags
        return {t.removeprefix("assay-experiment:") for t in tags if t.startswith("assay-experiment:")}

    def _locks_end(self) -> None:
        """A minute passes: the leases of a killed process end by themselves."""
        for limit in self._limits():
            if limit.name.startswith("assay-") and limit.active_slots:
                with suppress(ObjectNotFound):
                    self.world.api.update_global_concurrency_limit(
                        limit.name, GlobalConcurrencyLimitUpdate(active_slots=0)
                    )

    def _limits(self) -> list[GlobalConcurrencyLimitResponse]:
        """All of them: an order that is given up leaves its own behind."""
        found: list[GlobalConcurrencyLimitResponse] = []
        while page := self.world.api.read_global_concurrency_limits(limit=_PAGE, offset=len(found)):
            found += page
        return found


@contextmanager
def a_flow_player(world: World, folder: Path) -> Iterator[FlowPlayer]:
    """On top of a world: a deployment that nobody serves, means of both rails, a process that forks."""
    lab = world.stack.lab
    lab.plan(quote_minutes=1, review_minutes=1, window_days=0.01)
    with token_issuer() as issuer_url:
        policies = {
            show_quotes: _policy(lab.mpp["network_id"], show_quotes=show_quotes)
            for show_quotes in (True, False)
        }
        tokens = SharedPaymentTokens(issuer_url=issuer_url, issuer_key="key")
        tokens.save("crash-tokens", overwrite=True)
        served = world.api.read_deployment_by_name("experiment/prefect-assay")
        world.api.create_deployment(
            flow_id=served.flow_id,
            name="crash",
            entrypoint=served.entrypoint,
            path=served.path,
            parameter_openapi_schema=served.parameter_openapi_schema,
        )
        names = {
            lab.base_url: "lab",
            world.stack.ui_url: "prefect",
            issuer_url: "issuer",
            str(world.folder / "archive"): "archive",
            str(world.folder / "results"): "result",
        }
        targets = {t.name: t.id for t in world.service.iter_targets()}
        env = {**world.stack.env, "PREFECT_LOGGING_TO_API_ENABLED": "false"}
        with Killable(folder, env, names) as process:
            yield FlowPlayer(
                world=world,
                process=process,
                wallets={"x402-exact": world.wallet, "mpp-spt": tokens},
                policies=policies,
                targets={route: targets[name] for route, name in TARGETS.items()},
            )


def _policy(network_id: str, *, show_quotes: bool) -> SpendingPolicy:
    """Caps that nothing reaches; quotes are shown to a person, or are not."""
    policy = SpendingPolicy(
        per_experiment_cents=2_000_000,
        per_campaign_cents=5_000_000,
        machine_payments=True,
        rolling_cents=10**12,
        network_ids=[network_id],
        accept_quotes=not show_quotes,
    )
    policy.save(f"crash-policy-{show_quotes}".lower(), overwrite=True)
    return policy
