"""Faults of webhook deliveries, added through the control surface. Knows nothing of how a delivery is sent.

Chance is drawn from a seed: the same deliveries meet the same faults again.
"""

import random
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import Field, PrivateAttr

from prefect_assay.lab.kernel.faults import FaultList
from prefect_assay.lab.kernel.refusals import Body

Action = Literal["drop", "double", "reorder", "delay", "bad_signature", "old_secret", "stale"]
WEBHOOK_ACTIONS: Final = get_args(Action)
HOLDING: Final = frozenset({"reorder", "delay"})
STALE_SECONDS: Final = 86_400.0


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


class WebhookFault(Body):
    """What happens to matching attempts.

    Attributes:
        action: `drop` sends nothing and counts it as done; `double` sends the same bytes twice; `reorder` holds
            the delivery back until the next one of the experiment is delivered; `delay` holds it for `seconds` of
            lab time, or until it is released; `bad_signature` signs with a wrong secret; `old_secret` with the one
            before the last change (other deliveries do not match); `stale` dates the body `seconds` back.
        count: how many attempts it still hits; None for all, which is the default with a probability.
        after: how many matching attempts it lets pass first.
        probability: of being hit, per matching attempt.
        seed: decides the draws.
        organization_id: only this organisation's.
        experiment_id: only this experiment's.
        webhook_id: only what goes to this webhook of an organisation.
        seconds: of `delay` and `stale`.
    """

    action: Action
    count: Annotated[int, Field(ge=0)] | None = 1
    after: Annotated[int, Field(ge=0)] = 0
    probability: Annotated[float, Field(ge=0, le=1)] = 1.0
    seed: int | str = 0
    organization_id: str | None = None
    experiment_id: str | None = None
    webhook_id: str | None = None
    seconds: Annotated[float, Field(ge=0, lt=10**10)] | None = None
    _hits: int = 0
    _random: random.Random = PrivateAttr()

    def model_post_init(self, _context: Any, /) -> None:
        """Set the default count, and seed the draws."""
        self._random = random.Random(self.seed)  # noqa: S311 - faults, not secrets
        if "probability" in self.model_fields_set and "count" not in self.model_fields_set:
            self.count = None

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
        self._hits += 1
        return True

    def _matches(self, target: Target) -> bool:
        names = ("organization_id", "experiment_id", "webhook_id")
        named = all(getattr(self, name) in (None, getattr(target, name)) for name in names)
        possible = target.rotated if self.action == "old_secret" else True
        return named and possible and (target.holdable or self.action not in HOLDING)

    def view(self) -> dict[str, Any]:
        """As the control surface shows it; `hits` are the attempts hit so far."""
        return {**self.model_dump(), "hits": self._hits}


class WebhookFaults(FaultList[WebhookFault]):
    """The webhook faults; the first that hits an attempt happens."""

    def add(self, action: Action, count: int | None = 1, **details: Any) -> None:
        """Add a fault from inside the process."""
        self.append(WebhookFault(action=action, count=count, **details))

    def take(self, target: Target) -> WebhookFault | None:
        """The fault of this attempt, if any."""
        with self._lock:
            return next((fault for fault in self._faults if fault.hit(target)), None)
