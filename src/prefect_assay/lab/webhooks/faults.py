"""Faults of webhook deliveries, added through the control surface. Knows nothing of how a delivery is sent.

Chance is drawn from a seed: the same deliveries meet the same faults again.
"""

import random
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import Field, PrivateAttr

from prefect_assay.lab.kernel.faults import CountedFault, FaultList

Action = Literal["drop", "double", "reorder", "delay", "bad_signature", "old_secret", "stale"]
WEBHOOK_ACTIONS: Final = get_args(Action)
HOLDING: Final = frozenset({"reorder", "delay"})
STALE_SECONDS: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Target:
    """The attempt that may be hit.

    `webhook_id` is None for the experiment's own address, `rotated` when its secret replaced another one, `holdable`
    when it was not held back before.
    """

    organization_id: str
    experiment_id: str
    webhook_id: str | None
    rotated: bool
    holdable: bool


class WebhookFault(CountedFault):
    """What happens to matching attempts (docs/lab.md has the table).

    With a `probability`, drawn per matching attempt from `seed`, `count` defaults to None. `old_secret` only matches
    deliveries whose secret was changed. `seconds` are of `delay` and `stale`.
    """

    action: Action
    count: Annotated[int, Field(ge=0)] | None = 1
    probability: Annotated[float, Field(ge=0, le=1)] = 1.0
    seed: int | str = 0
    experiment_id: str | None = None
    webhook_id: str | None = None
    seconds: Annotated[float, Field(ge=0, lt=10**10)] | None = None
    _random: random.Random = PrivateAttr()

    def model_post_init(self, _context: Any, /) -> None:
        """Set the default count, and seed the draws."""
        self._random = random.Random(self.seed)  # noqa: S311 - faults, not secrets
        if "probability" in self.model_fields_set and "count" not in self.model_fields_set:
            self.count = None

    def hit(self, target: Target) -> bool:
        """Whether this attempt is hit; counts it."""
        named = self._matches(
            organization_id=target.organization_id,
            experiment_id=target.experiment_id,
            webhook_id=target.webhook_id,
        )
        possible = target.rotated if self.action == "old_secret" else True
        return named and possible and (target.holdable or self.action not in HOLDING) and self._strike()

    def _by_chance(self) -> bool:
        return self._random.random() < self.probability


class WebhookFaults(FaultList[WebhookFault]):
    """The webhook faults; the first that hits an attempt happens."""

    def take(self, target: Target) -> WebhookFault | None:
        """The fault of this attempt, if any."""
        with self._lock:
            return next((fault for fault in self._faults if fault.hit(target)), None)
