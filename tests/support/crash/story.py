"""Schedules of kills and faults, how one is played, and the judge: the lab's records, and the log held against them.

Ordering and paying alone are played; campaigns are killed in `tests/stories`. A kill hits one execution at one point; faults stand
in the lab from the start for a number of executions. Whatever ends badly is started again, until it ends well or keeps failing.
"""

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from assay_lab.testing import LocalLab
from prefect_assay.orders.ledger import OrderLedger, OrderState
from support.crash.process import KILLED, Execution

if TYPE_CHECKING:
    from support.crash.core_player import CorePlayer

ROUTES: Final = ("self-service", "quoted")
RAILS: Final = ("x402-exact", "mpp-spt")
EXECUTIONS_MAX: Final = 14
FAILURES_MAX: Final = 3  # after the faults are gone, it is looked at so often


Kill = int | tuple[str, int]


class End(StrEnum):
    """How an execution left its run."""

    KILLED = "killed"
    WAITS = "waits"
    DONE = "done"
    ASKS = "asks"
    FAILED = "failed"


@dataclass(frozen=True)
class Fault:
    """One fault of the lab, of its routes or (`payment`) of its pay path."""

    action: str
    details: Mapping[str, Any] = field(default_factory=dict)
    payment: bool = False


@dataclass(frozen=True)
class Schedule:
    """What is to happen. `kills`: execution number to a point's number, or its name and which of that name; from 0."""

    campaign_id: str
    route: str
    rail: str
    kills: Mapping[int, Kill] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    faulty_executions: int = EXECUTIONS_MAX


@dataclass
class Story:
    """What has happened."""

    schedule: Schedule
    ends: list[End] = field(default_factory=list)
    executions: list[Execution] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    surplus: int = 0

    @property
    def end(self) -> End:
        return self.ends[-1]

    @property
    def credentials(self) -> set[str]:
        """Every different means of payment that has been put on the wire, as the wire shows it."""
        return {sent for execution in self.executions for sent in execution.credentials}

    def killed_at(self) -> list[str]:
        return [e.points[-1] for e in self.executions if e.code == KILLED]

    def __str__(self) -> str:
        told = "; ".join(self.messages)
        return f"{self.schedule}\n  ends {[*map(str, self.ends)]}, killed {self.killed_at()}\n  said {told}"


def play(player: "CorePlayer", schedule: Schedule) -> Story:
    """To the end, whichever it is."""
    story = Story(schedule)
    _place(player.lab, schedule.faults)
    job = player.start(schedule)
    failures = 0
    try:
        for number in range(EXECUTIONS_MAX):
            if number == schedule.faulty_executions:
                _clear(player.lab)
            done = player.execute(job, schedule.kills.get(number))
            story.executions.append(done)
            end, error, message = player.look(job, done)
            story.ends.append(end)
            if error:
                story.errors.append(error)
                story.messages.append(message)
            failures += end is End.FAILED and number >= schedule.faulty_executions
            if end is End.DONE or failures > FAILURES_MAX:
                break
            if (
                end is End.FAILED
                and not _faults_will_end(schedule)
                and not schedule.kills.keys() - range(number + 1)
            ):
                break
            if end is End.ASKS:
                player.approve(job)
            elif end is End.WAITS:
                player.lab.advance(until="idle")
        story.known = player.known(job)
    finally:
        _clear(player.lab)
    return story


def judge(player: "CorePlayer", story: Story, *, faults_gone: bool = True) -> list[str]:
    """What is wrong with a story, by the lab's records; empty when nothing is."""
    schedule, lab = story.schedule, player.lab
    orders = [
        e
        for e in player.service.experiments.iterate(search=schedule.campaign_id)
        if schedule.campaign_id in (e.name or "").split()
    ]
    ids = {order.id for order in orders}
    paid = [s for s in lab.settlements() if s["experiment_id"] in ids]
    ledger = player.log(schedule)
    state = ledger.read()
    wrong = contradictions(ledger, [s["experiment_id"] for s in paid])
    wrong += _strangers(player, story, state, orders)
    if len(paid) > 1:
        wrong.append(f"{len(paid)} settlements")
    for settled in paid:
        amount = player.service.invoices.get(settled["invoice_id"]).amount
        if settled["amount_cents"] != amount or settled["payment_method"] != schedule.rail:
            wrong.append(f"a settlement of {settled['amount_cents']} for an invoice of {amount} cents")
    if story.end is End.DONE and not (orders and len(paid) == 1):
        wrong.append(f"done with {len(orders)} experiments and {len(paid)} settlements")
    if story.end in {End.DONE, End.ASKS} and ids - story.known - {*state.surplus}:
        wrong.append("a lost order: the lab has it, the run does not know it")
    refusals = sum(error == "PaymentFailed" for error in story.errors)
    if len(story.credentials) > (1 if schedule.rail == "x402-exact" else 1 + refusals):
        wrong.append(f"{len(story.credentials)} different credentials were sent for one invoice")
    if story.end is not End.DONE and not _for_a_person(story, faults_gone=faults_gone):
        wrong.append(f"ends as {story.end} {story.errors[-1:]}")
    if not schedule.faults and set(story.errors) - (
        {"PaymentOutcomeUnknown"} if schedule.rail == "mpp-spt" else set()
    ):
        wrong.append(f"errors without a fault: {story.errors}")
    return wrong


def contradictions(ledger: OrderLedger, paid: list[str], *, by_machine: bool = True) -> list[str]:
    """What the log of an order says that cannot be, by itself and beside the experiments the lab was paid for.

    A person who pays a hosted invoice writes no log.
    """
    kinds = Counter(record.kind for record in ledger.records())
    state = ledger.read()
    wrong = [
        f"{kinds[kind]} records `{kind}`" for kind in ("planned", "ordered", "settled") if kinds[kind] > 1
    ]
    order_id = state.ordered.experiment_id if state.ordered else None
    wrong += [f"experiment {one} was paid, and the order is {order_id}" for one in paid if one != order_id]
    if paid and by_machine and state.payment is None:
        wrong.append("a payment that the log does not know")
    if state.settled and not paid:
        wrong.append("the log says settled, and the lab was not paid")
    return wrong


def _strangers(player: "CorePlayer", story: Story, state: OrderState, orders: list[Any]) -> list[str]:
    """Experiments of the order that are neither the order nor a surplus that is recorded and commits nothing."""
    story.surplus = len(state.surplus)
    order_id = state.ordered.experiment_id if state.ordered else None
    return [
        f"experiment {order.code} is neither the order nor a recorded surplus"
        for order in orders
        if order.id != order_id
        and (order.id not in state.surplus or _committed(player, story.schedule, order.id))
        and (order_id is not None or story.end is End.DONE)
    ]


def _committed(player: "CorePlayer", schedule: Schedule, experiment_id: str) -> bool:
    """An invoice of the quoted route exists only after a confirmation; on the other route a payment decides."""
    invoice = player.service.invoices.find_for_experiment(experiment_id)
    return invoice is not None and (schedule.route == "quoted" or invoice.status == "paid")


def _for_a_person(story: Story, *, faults_gone: bool) -> bool:
    """A story that only a person can take further, and that says so.

    A shared payment token cannot be sent again by another process: what was sent and is not settled has an unknown outcome.
    """
    if story.end is not End.FAILED:
        return False
    last = story.errors[-1]
    if last == "PaymentOutcomeUnknown":
        issued = any("issuer" in point for execution in story.executions for point in execution.points)
        return issued if story.schedule.rail == "mpp-spt" else not faults_gone
    if last == "PaymentRefused" and story.schedule.rail == "mpp-spt" and "PaymentFailed" in story.errors:
        return "was sent and is failed, valid until" in story.messages[-1]  # another token waits for its end
    return last in {"PaymentRefused", "PaymentFailed"} and not faults_gone


def points_between(executions: Iterable[Execution]) -> list[tuple[int, tuple[str, int]]]:
    """Every point of executions without kills from the first word to the service until the invoice is paid.

    Execution number and point. What only waits for results and archives them is left out, and so is the loading of
    names by threads of Prefect's.
    """
    points = []
    begun = False
    for number, execution in enumerate(executions):
        seen: Counter[str] = Counter()
        for name in execution.points:
            begun = begun or " lab " in name
            if begun and not _LOADING.search(name):
                points.append((number, (name, seen[name])))
            seen[name] += 1
        if execution.credentials:
            return points
    return points


_LOADING: Final = re.compile(
    r" GET /api/(flows|deployments)/| archive (?!os\.link /LEDGERS/)| s3 (?!PUT \S+/LEDGERS/)| result "
)


def random_schedule(seed: int, number: int, prefix: str, *, points: int) -> Schedule:
    """Kills and faults drawn from the seed and the number alone."""
    draw = random.Random(f"{seed}/{number}")
    route, rail = draw.choice(ROUTES), draw.choice(RAILS)
    kills = {n: draw.randrange(points) for n in range(3) if draw.random() < (0.75, 0.4, 0.2)[n]}
    count = draw.choice((0, 0, 1, 1, 2))
    return Schedule(
        f"{prefix}-{seed}-{number}",
        route,
        rail,
        kills=kills,
        faults=tuple(_drawn_fault(draw) for _ in range(count)),
        faulty_executions=draw.randint(1, 4) if count else 0,
    )


_BREAKS: Final = ("lose_answer", "error_after", "truncate", "reset", "status")
_CALLS: Final = (
    ("POST", "/experiments"),
    ("POST", "/experiments"),
    ("POST", "/invoices/*/pay"),
    ("POST", "/invoices/*/pay"),
    ("POST", "/experiments/*/quote/confirm"),
    ("GET", "/experiments"),
    ("GET", "/invoices/*"),
    ("GET", "*"),
)
PAYMENT_FAULTS: Final = (
    "always_402",
    "wrong_amount",
    "wrong_payee",
    "wrong_asset",
    "wrong_network",
    "wrong_resource",
    "expired_challenge",
    "ten_year_window",
    "missing_header",
    "no_receipt",
    "replay_403",
    "insufficient_funds",
)


def _drawn_fault(draw: random.Random) -> Fault:
    details = {"count": draw.randint(1, 3), "after": draw.randint(0, 2)}
    kind = draw.random()
    if kind < 0.4:
        return Fault(draw.choice(PAYMENT_FAULTS), details, payment=True)
    if kind < 0.5:
        return Fault(
            draw.choice(("partial_create", "post_invoice_failure")),
            {"method": "POST", "path": "/experiments"},
        )
    method, path = draw.choice(_CALLS)
    return Fault(draw.choice(_BREAKS), details | {"method": method, "path": path})


def _faults_will_end(schedule: Schedule) -> bool:
    return bool(schedule.faults) and schedule.faulty_executions < EXECUTIONS_MAX


def _place(lab: LocalLab, faults: Iterable[Fault]) -> None:
    for fault in faults:
        (lab.payment_fault if fault.payment else lab.fault)(fault.action, **fault.details)


def _clear(lab: LocalLab) -> None:
    lab.clear_faults()
    lab.end_payment_faults()
