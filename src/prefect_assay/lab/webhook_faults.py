"""Faults of webhook deliveries, asked for through the control surface.

They know nothing of how a delivery is sent: `take` says what shall happen to an attempt, and counts. The
probability is drawn from a seed, so that the same deliveries meet the same faults again.
"""

import copy
import random
import threading
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, get_args

from prefect_assay.lab.refusals import Refusal

Action = Literal["drop", "double", "reorder", "delay", "bad_signature", "old_secret", "stale"]
WEBHOOK_ACTIONS: Final = get_args(Action)
HOLDING: Final = frozenset({"reorder", "delay"})
STALE_SECONDS: Final = 86_400.0
_TEXTS: Final = ("organization_id", "experiment_id", "webhook_id")


@dataclass(frozen=True, slots=True)
class Target:
    """The attempt that may be hit.

    Attributes:
        organization_id: whose experiment it is about.
        experiment_id: the experiment.
        webhook_id: the organisation's webhook it goes to; None for the experiment's own address.
        rotated: whether its secret replaced another one.
        holdable: whether it was not held back before.
    """

    organization_id: str
    experiment_id: str
    webhook_id: str | None
    rotated: bool
    holdable: bool


@dataclass(slots=True)
class WebhookFault:
    """What happens to matching attempts.

    Attributes:
        action: `drop` sends nothing and counts it as done; `double` sends the same bytes twice; `reorder` holds
            the delivery back until the next one of the experiment is through; `delay` holds it for `seconds` of
            lab time, or until it is released; `bad_signature` signs with a wrong secret; `old_secret` with the one
            before the last change (other deliveries do not match); `stale` dates the body `seconds` back.
        count: how many attempts it still hits; None for all.
        after: how many matching attempts it lets pass first.
        probability: of being hit, per matching attempt.
        seed: decides the draws.
        organization_id: only this organisation's.
        experiment_id: only this experiment's.
        webhook_id: only what goes to this webhook of an organisation.
        seconds: of `delay` and `stale`.
        hits: attempts hit so far.
    """

    action: Action
    count: int | None = 1
    after: int = 0
    probability: float = 1.0
    seed: int | str = 0
    organization_id: str | None = None
    experiment_id: str | None = None
    webhook_id: str | None = None
    seconds: float | None = None
    hits: int = 0
    _random: random.Random = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311 - faults, not secrets

    def hit(self, target: Target) -> bool:
        """Whether this attempt is hit; counts it."""
        if self.count == 0 or not self._matches(target):
            return False
        if self.after > 0:
            self.after -= 1
            return False
        if self._random.random() >= self.probability:
            return False
        self.count = None if self.count is None else self.count - 1
        self.hits += 1
        return True

    def _matches(self, target: Target) -> bool:
        named = all(getattr(self, name) in (None, getattr(target, name)) for name in _TEXTS)
        possible = target.rotated if self.action == "old_secret" else True
        return named and possible and (target.holdable or self.action not in HOLDING)

    def view(self) -> dict[str, Any]:
        """As the control surface shows it."""
        return {item.name: getattr(self, item.name) for item in fields(self) if item.init}


class WebhookFaults:
    """All faults asked for; the first that hits an attempt is the one that happens."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[WebhookFault] = []

    def add(self, action: Any, count: int | None = 1, **details: Any) -> None:
        """Ask for a fault.

        Raises:
            Refusal: 400 for an unknown action or values that make no sense.
        """
        if action not in WEBHOOK_ACTIONS:
            raise Refusal(400, f"unknown webhook fault {action!r}; known are {', '.join(WEBHOOK_ACTIONS)}")
        fault = WebhookFault(action, count, **details)
        _check(fault)
        with self._lock:
            self._faults.append(fault)

    def take(self, target: Target) -> WebhookFault | None:
        """The fault of this attempt, if any."""
        with self._lock:
            return next((fault for fault in self._faults if fault.hit(target)), None)

    def view(self) -> list[dict[str, Any]]:
        """All, used up ones too, with their hits."""
        with self._lock:
            return [fault.view() for fault in self._faults]

    def save(self) -> list[WebhookFault]:
        """A copy of all, draws included, to be given to `load`."""
        with self._lock:
            return copy.deepcopy(self._faults)

    def load(self, saved: list[WebhookFault]) -> None:
        """Put these in place of all."""
        with self._lock:
            self._faults = copy.deepcopy(saved)

    def clear(self) -> None:
        """Drop all."""
        with self._lock:
            self._faults.clear()


def _check(fault: WebhookFault) -> None:
    numbers = [fault.count, fault.after]
    whole = all(number is None or (type(number) is int and number >= 0) for number in numbers)
    if not whole or fault.after is None:
        raise Refusal(400, "count and after are whole numbers from 0; a count of null hits all")
    if type(fault.probability) not in (int, float) or not 0 <= fault.probability <= 1:
        raise Refusal(400, "probability is a number from 0 to 1")
    seconds = fault.seconds
    if seconds is not None and (type(seconds) not in (int, float) or not 0 <= seconds < 10**10):
        raise Refusal(400, "seconds is a number from 0")
    if any(not isinstance(getattr(fault, name), str | None) for name in _TEXTS):
        raise Refusal(400, f"{', '.join(_TEXTS)} are ids")
