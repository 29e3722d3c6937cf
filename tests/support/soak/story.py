"""What happens in a soak: campaigns in batches, lab days in steps, lost and forged webhooks, restarts and kills.

A soak is told by its seed, but for what two processes do at the same time. Nothing here judges: `soak_judge.py` does.
"""

import random
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, TypeVar
from uuid import UUID

import httpx
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, StateType

from prefect_assay.blocks.block_references import as_parameter
from prefect_assay.campaigns.runs.queries import read_runs, suspended_filter
from prefect_assay.campaigns.runs.tags import EXPERIMENT_TAG, ORDER_TAG, tag_values
from prefect_assay.orders.ledger.campaign_log import CampaignLog
from support.accounts import AMOUNT_USD, flow_parameters
from support.runs.sweeps import swept
from support.runs.world import EGFR
from support.soak.world import SoakWorld
from support.stories.world import fasta
from support.webhooks.deliveries import body_of, headers_of

T = TypeVar("T")

WINDOW_DAYS: Final = 15.0  # the longest that an experiment takes
PER_CAMPAIGN: Final = 4  # experiments of a campaign, each of one design
MACHINE_EVERY: Final = 10  # one campaign in so many is paid by x402-exact, the others by a person
SWEEP_EVERY: Final = 4
DESIGN: Final = "SESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE"
DESIGNS: Final = {letter: f"{DESIGN}{letter}" for letter in "ADEF"[:PER_CAMPAIGN]}
ASSAY: Final = {"experiment_type": "affinity", "method": "bli", "target": EGFR}
BUSY: Final = (StateType.SCHEDULED, StateType.PENDING, StateType.RUNNING)
# What the issue asks for, of all attempts. The first fault that hits an attempt happens, so later ones are drawn
# from what the earlier ones leave.
FAULTS: Final = (("bad_signature", 0.01), ("drop", 0.30), ("double", 0.10), ("reorder", 0.10))

_STEPS_MORE: Final = 12
_ORDERS_SHARE: Final = 0.8  # of the time; what remains brings those in progress to their end
_STUCK_SECONDS: Final = 900.0
_POLL_SECONDS: Final = 1.0  # each costs the server two counts


def patiently(call: Callable[[], T]) -> T:
    """The test's own requests get through a busy server: SQLite answers 503 now and then."""
    for _ in range(60):
        try:
            return call()
        except (httpx.TransportError, httpx.HTTPStatusError):
            time.sleep(2)
    return call()


class OutOfTime(AssertionError):
    """The soak has not come to its end in the time it was given."""


@dataclass(frozen=True)
class Plan:
    """One soak.

    Attributes:
        experiments: how many are ordered, if time allows; four in a campaign.
        seed: of everything that is drawn.
        minutes: after a part of them no batch is begun any more; at their end the soak fails.
        batches: orders come in so many, with a step between them.
        step_days: lab days of one step.
        disturbances: what happens during which step, by the names of `Soak`'s methods.
        machine_every: one campaign in so many is paid by machine.
    """

    experiments: int
    seed: int
    minutes: float
    batches: int
    step_days: float
    disturbances: dict[int, tuple[str, ...]]
    machine_every: int = MACHINE_EVERY


@dataclass
class Soak:
    """A soak in progress, and what it has noted for its judge."""

    world: SoakWorld
    plan: Plan
    tell: Callable[[str], None] = print
    runs: dict[str, UUID] = field(default_factory=dict)  # the first of each campaign
    sweeps: list[UUID] = field(default_factory=list)
    forged: list[tuple[str, int, bool]] = field(
        default_factory=list
    )  # how, the answer, whether the run stayed asleep
    restarts: Counter[str] = field(default_factory=Counter)
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._draw = random.Random(self.plan.seed)
        self._stack = self.world.stack
        self._lab = self.world.stack.lab
        self._paid: set[str] = set()
        self._background = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lab-days")
        self._step = 0
        self._ahead = timedelta()

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self.began

    def play(self) -> None:
        """From the first order to the last sweep."""
        self._break_webhooks()
        campaigns = -(-self.plan.experiments // PER_CAMPAIGN)
        per_batch = -(-campaigns // self.plan.batches)
        for first in range(0, campaigns, per_batch):
            if first and self.seconds > _ORDERS_SHARE * 60 * self.plan.minutes:
                self.tell(f"after {self.seconds:.0f} s no more campaigns: {first} of {campaigns}")
                break
            for number in range(first, min(first + per_batch, campaigns)):
                self._start(number)
            self._one_step()
        for _ in range(int(WINDOW_DAYS // self.plan.step_days) + 2):
            self._one_step()
        self._drain(0)
        self._lab.release()
        for _ in range(_STEPS_MORE):  # an order that came late, after kills, takes its days all the same
            self.sweep_to_the_end()
            if self._all_over():
                return
            self._one_step()
            self._drain(0)
            self._lab.release()

    def sweep(self, **parameters: Any) -> None:
        """The sweep as it is shipped, as a run of its own deployment."""
        self.sweeps.append(self._create("sweep", f"sweep-{len(self.sweeps)}", parameters))

    def sweep_to_the_end(self) -> None:
        """One more sweep, half an hour later than the last, because pauses before restarts grow; and all that follows.

        It is played in this process.
        """
        self._start_what_never_began()
        self._drain(0)
        self._ahead += timedelta(minutes=30)
        patiently(lambda: swept(after=self._ahead))
        self._drain(0)

    def _all_over(self) -> bool:
        return all(self._log(campaign).read().over for campaign in self.runs)

    def _log(self, campaign: str) -> CampaignLog:
        archive = self.world.blocks["archive"]
        return CampaignLog(archive.get_store(), archive.prefix, campaign)

    def _start_what_never_began(self) -> None:
        """A run that dies before its campaign's log begins has ordered nothing: a person starts it again."""
        for number, (campaign, run_id) in enumerate(list(self.runs.items())):
            run = patiently(lambda run_id=run_id: self.world.api.read_flow_run(run_id))
            if run.state.is_crashed() and self._log(campaign).read().started is None:
                self._start(number, again=True)

    def _start(self, number: int, *, again: bool = False) -> None:
        campaign = f"soak-{self.plan.seed}-{number:05d}"
        blocks = self.world.blocks
        parameters = {
            "designs": fasta(DESIGNS),
            "assay": ASSAY,
            "designs_per_experiment": 1,
            "campaign_id": campaign,
            "payment_method": "async_invoice" if self._hosted(campaign) else "x402-exact",
        }
        parameters |= {"account": as_parameter(blocks["account"]), "spend_up_to_usd": AMOUNT_USD}
        key = f"{campaign}-{time.time()}" if again else campaign
        self.runs[campaign] = self._create("campaign", key, flow_parameters(parameters))

    def _create(self, flow: str, key: str, parameters: dict[str, Any]) -> UUID:
        return patiently(
            lambda: (
                self.world.api.create_flow_run_from_deployment(
                    self.world.deployments[flow], parameters=parameters, idempotency_key=key
                ).id
            )
        )

    def _one_step(self) -> None:
        """Some lab days, with their deliveries, while executions and whatever the plan says go on."""
        disturbances = self.plan.disturbances.get(self._step, ())
        self._start_what_never_began()
        if "forge" in disturbances:
            self._drain(0)  # a genuine wake-up at that moment would be taken for a forged one
            self.forge()
        self._drain(max(2, len(self.runs) // 20))
        self._pay_hosted()
        days = self._background.submit(self._days_pass)
        for name in disturbances:
            if name not in {"forge", "lab_stopped"}:
                time.sleep(self._draw.uniform(0, 1.0))
                getattr(self, name)()
                self.restarts[name] += 1
        days.result()
        if "lab_stopped" in disturbances:
            self.lab_stopped()
            self.restarts["lab_stopped"] += 1
        self._step += 1
        if self._step % SWEEP_EVERY == 0:
            self.sweep()
        at_work = self._at_work()
        self.tell(f"{self.seconds:6.0f} s, step {self._step}: {len(self.runs)} ordered, {at_work} at work")

    def _days_pass(self) -> None:
        """In parts, because an answer comes when everything that fell due has been delivered."""
        parts = max(1, len(self.runs) // 100)
        for _ in range(parts):
            with suppress(httpx.ReadTimeout):  # the lab goes on by itself, and the next part waits for it
                self._lab.advance(days=self.plan.step_days / parts)

    def server_killed(self) -> None:
        """SIGKILL to the Prefect server, and it comes back."""
        self._stack.kill("server")
        self._stack.start_server()

    def server_stopped(self) -> None:
        """SIGTERM to the Prefect server, and it comes back."""
        self._stack.stop_server()
        self._stack.start_server()

    def receiver_killed(self) -> None:
        """SIGKILL to the receiver, and it comes back."""
        self._stack.kill("receiver")
        self._stack.start_receiver()

    def receiver_stopped(self) -> None:
        """SIGTERM to the receiver, and it comes back."""
        self._stack.stop_receiver()
        self._stack.start_receiver()

    def worker_killed(self) -> None:
        """SIGKILL to the worker and all its executions, and a new one starts."""
        self._stack.kill("runner")
        self._stack.start_runner()

    def lab_stopped(self) -> None:
        """The service goes away for a moment, with executions in progress."""
        self._stack.stop_lab()
        self._stack.start_lab()
        self._break_webhooks()  # faults are kept in memory

    def forge(self) -> None:
        """Deliveries that nobody has signed, for runs that are asleep: refused, and the runs sleep on."""
        asleep = patiently(lambda: read_runs(self.world.api, suspended_filter()))
        asleep = [run for run in asleep if tag_values(run.tags, ORDER_TAG)]
        chosen = self._draw.sample(asleep, min(len(asleep), max(4, len(self.runs) // 100)))
        with httpx.Client(timeout=30, trust_env=False) as http:
            for number, run in enumerate(chosen):
                key = tag_values(run.tags, ORDER_TAG)[0]
                how, headers, body = self._forgery(number, run, key)
                answer = http.post(f"{self._stack.receiver_url}/{key}", content=body, headers=headers)
                now = patiently(lambda run=run: self.world.api.read_flow_run(run.id))
                self.forged.append((how, answer.status_code, now.state.id == run.state.id))

    def _forgery(self, number: int, run: FlowRun, order_key: str) -> tuple[str, dict[str, str], bytes]:
        body = body_of(data_experiment_id=tag_values(run.tags, EXPERIMENT_TAG)[0])
        signed = headers_of(body, "a secret that nobody has given out, ever")
        signature = next(name for name in signed if name.endswith("-Signature"))
        match number % 4:
            case 0:
                return "wrong secret", signed, body
            case 1:
                return "no signature", {k: v for k, v in signed.items() if k != signature}, body
            case 2:
                return "the path as secret", headers_of(body, order_key), body
            case _:
                return "another body", headers_of(body_of(), self._stack.signing_key), body

    def _pay_hosted(self) -> None:
        """A person pays what is open, once."""
        for experiment in self.world.service.experiments.iterate():
            if experiment.id not in self._paid:
                self._paid.add(experiment.id)
                if self._hosted(experiment.name.split()[0]):
                    self._lab.event("pay_invoice", experiment.id)

    def _hosted(self, campaign: str) -> bool:
        return int(campaign.rpartition("-")[2]) % self.plan.machine_every != 1

    def _break_webhooks(self) -> None:
        left = 1.0
        for action, share in FAULTS:
            seed = f"{self.plan.seed}-{action}-{self._step}"
            self._lab.webhook_fault(action, probability=share / left, seed=seed)
            left -= share

    def _at_work(self) -> int:
        """Runs that are due or being executed."""
        return sum(self._count(flow, *BUSY) for flow in ("campaign", "sweep", "decide"))

    def _count(self, flow: str, *kinds: StateType) -> int:
        chosen = FlowRunFilter(
            state=FlowRunFilterState(type=FlowRunFilterStateType(any_=list(kinds))),
            deployment_id=FlowRunFilterDeploymentId(any_=[self.world.deployments[flow]]),
        )
        body = {"flow_runs": chosen.model_dump(mode="json", exclude_unset=True)}
        return patiently(lambda: int(self.world.api.request("POST", "/flow_runs/count", json=body).json()))

    def _drain(self, most: int) -> None:
        """Until no more than so many runs are at work."""
        since, done = time.monotonic(), -1
        while (left := self._at_work()) > most:
            ended = self.world.ended()
            if ended != done:
                since, done = time.monotonic(), ended
            if time.monotonic() - since > _STUCK_SECONDS:
                raise AssertionError(f"{left} runs at work, and none has ended in {_STUCK_SECONDS:.0f} s")
            if self.seconds > 60 * self.plan.minutes:
                raise OutOfTime(f"{left} runs at work after {self.plan.minutes} minutes, step {self._step}")
            self._stack.check()
            time.sleep(_POLL_SECONDS)
