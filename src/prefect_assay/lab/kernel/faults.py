"""Faults added through the control surface: what all kinds share, and the faults of payments and of deliveries.

Payment faults test a client's guard; they know nothing of the rails. A wrong term holds for the challenge and for the
credential alike, so that a client without a guard really pays it. Webhook faults draw chance from a seed: the same
deliveries meet the same faults again.
"""

import copy
import random
import threading
from dataclasses import dataclass
from typing import Annotated, Any, Final, Generic, Literal, Protocol, TypeVar

from pydantic import Field, PrivateAttr

from prefect_assay.lab.kernel.refusals import Body

PaymentAction = Literal[
    "always_402",
    "insufficient_funds",
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
]
WebhookAction = Literal["drop", "double", "reorder", "delay", "bad_signature", "old_secret", "stale"]
HOLDING: Final = frozenset({"reorder", "delay"})
STALE_SECONDS: Final = 86_400.0


class _Fault(Protocol):
    @property
    def organization_id(self) -> str | None: ...

    def view(self) -> dict[str, Any]: ...


Kind = TypeVar("Kind", bound=_Fault)


class FaultList(Generic[Kind]):
    """All faults of one kind in order, used up ones too. The list is replaced, not changed: it is read without lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[Kind] = []

    def append(self, fault: Kind) -> None:
        """Append a fault."""
        with self._lock:
            self._faults = [*self._faults, fault]

    def view(self) -> list[dict[str, Any]]:
        """As the control surface shows them, with their counts."""
        with self._lock:
            return [fault.view() for fault in self._faults]

    def save(self) -> list[Kind]:
        """A copy for a snapshot, with counts and the state of chance."""
        with self._lock:
            return copy.deepcopy(self._faults)

    def load(self, saved: list[Kind]) -> None:
        """Restore a copy."""
        with self._lock:
            self._faults = copy.deepcopy(saved)

    def clear(self, organization_id: str | None = None) -> None:
        """Drop all, or those of one organisation."""
        with self._lock:
            self._faults = [
                fault
                for fault in self._faults
                if organization_id is not None and fault.organization_id != organization_id
            ]


class CountedFault(Body):
    """A fault that hits `count` matches, None for all, and lets `after` matches pass first."""

    count: Annotated[int, Field(ge=0)] | None = None
    after: Annotated[int, Field(ge=0)] = 0
    organization_id: str | None = None
    _hits: int = 0

    def view(self) -> dict[str, Any]:
        """As the control surface shows it, with its `hits`."""
        return {**self.model_dump(), "hits": self._hits}

    def _matches(self, **names: str | None) -> bool:
        return all(getattr(self, name) in (None, value) for name, value in names.items())

    def _strike(self) -> bool:
        """Count a match; whether it is hit."""
        if self.count == 0:
            return False
        if self.after > 0:
            self.after -= 1
            return False
        if not self._by_chance():
            return False
        self.count = None if self.count is None else self.count - 1
        self._hits += 1
        return True

    def _by_chance(self) -> bool:
        return True


class PaymentFault(CountedFault):
    """What is wrong with matching pay calls (docs/lab.md has the table); `invoice_id` is the invoice's own."""

    action: PaymentAction
    rail: Literal["x402-exact", "mpp-spt"] | None = None
    invoice_id: str | None = None

    def hit(self, rail: str, organization_id: str, invoice_id: str) -> bool:
        """Whether this call is hit; counts it."""
        matches = self._matches(rail=rail, organization_id=organization_id, invoice_id=invoice_id)
        return matches and self._strike()


class PaymentFaults(FaultList[PaymentFault]):
    """The payment faults; the first that hits a call happens."""

    def take(self, rail: str, organization_id: str, invoice_id: str) -> str | None:
        """What is wrong with this call, if anything."""
        with self._lock:
            hits = (fault for fault in self._faults if fault.hit(rail, organization_id, invoice_id))
            return next((fault.action for fault in hits), None)


@dataclass(frozen=True, slots=True)
class DeliveryTarget:
    """The attempt that may be hit."""

    organization_id: str
    experiment_id: str
    webhook_id: str | None  # None for the experiment's own address
    rotated: bool  # its secret replaced another one
    holdable: bool  # it was not held back before


class WebhookFault(CountedFault):
    """What happens to matching attempts (docs/lab.md has the table); `old_secret` needs a changed secret."""

    action: WebhookAction
    count: Annotated[int, Field(ge=0)] | None = 1  # None with a `probability`, unless given
    probability: Annotated[float, Field(ge=0, le=1)] = 1.0  # drawn per matching attempt from `seed`
    seed: int | str = 0
    experiment_id: str | None = None
    webhook_id: str | None = None
    seconds: Annotated[float, Field(ge=0, lt=10**10)] | None = None  # of `delay` and `stale`
    _random: random.Random = PrivateAttr()

    def model_post_init(self, _context: Any, /) -> None:
        """Set the default count, and seed the draws."""
        self._random = random.Random(self.seed)  # noqa: S311 - faults, not secrets
        if "probability" in self.model_fields_set and "count" not in self.model_fields_set:
            self.count = None

    def hit(self, target: DeliveryTarget) -> bool:
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

    def take(self, target: DeliveryTarget) -> WebhookFault | None:
        """The fault of this attempt, if any."""
        with self._lock:
            return next((fault for fault in self._faults if fault.hit(target)), None)
