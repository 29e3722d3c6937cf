"""Faults added through the control surface: what all kinds share, and the faults of payments and of deliveries.

Payment faults test a client's guard; they know nothing of the rails. A wrong term holds for the challenge and for the
credential alike, so that a client without a guard really pays it. Chance is drawn from a seed: the same requests and
deliveries meet the same faults again.
"""

import itertools
import random
import threading
from typing import Annotated, Any, Final, Generic, Literal, TypeVar

from pydantic import Field, PrivateAttr

from assay_lab.kernel.refusals import Body, MachineRail

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


class CountedFault(Body):
    """A fault that lets `after` matches pass, and then hits `count` of them, or each with a `probability`."""

    # None for all, which is the default with a `probability`
    count: Annotated[int, Field(ge=0)] | None = 1
    after: Annotated[int, Field(ge=0)] = 0
    probability: Annotated[float, Field(ge=0, le=1)] = 1.0  # drawn per match from `seed`
    seed: int | str = 0
    organization_id: str | None = None
    _matched: int = 0
    _used: int = 0
    _random: random.Random = PrivateAttr()

    def model_post_init(self, _context: Any, /) -> None:
        """Set the default count, and seed the draws."""
        self._random = random.Random(self.seed)  # noqa: S311 - faults, not secrets
        if "probability" in self.model_fields_set and "count" not in self.model_fields_set:
            self.count = None

    def view(self) -> dict[str, Any]:
        """As the control surface shows it, with its counts."""
        return {**self.model_dump(), "matched": self._matched, "used": self._used}

    def meets(self, **names: Any) -> bool:
        """Whether it is meant for this: a name that it does not give matches all."""
        return all(getattr(self, name) in (None, value) for name, value in names.items())

    def strikes(self) -> bool:
        """Count a match; whether it is hit."""
        if self.count is not None and self._used >= self.count:
            return False
        self._matched += 1
        if self._matched <= self.after or self._random.random() >= self.probability:
            return False
        self._used += 1
        return True

    def give_back(self) -> None:
        """Undo a strike on what it cannot harm, such as an order without an invoice."""
        self._used -= 1


Kind = TypeVar("Kind", bound=CountedFault)


class FaultList(Generic[Kind]):
    """All faults of one kind in order, used up ones too; the first that strikes decides."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        # Replaced, not changed: it is read without lock.
        self._faults: dict[int, Kind] = {}

    def append(self, fault: Kind) -> int:
        """Append a fault, under a number that is never used again."""
        with self._lock:
            number = next(self._numbers)
            self._faults = {**self._faults, number: fault}
            return number

    def remove(self, number: int) -> bool:
        """Drop one; False for an unknown number."""
        with self._lock:
            known = number in self._faults
            self._faults = {other: fault for other, fault in self._faults.items() if other != number}
            return known

    def clear(self, organization_id: str | None = None) -> None:
        """Drop all, or those of one organization."""
        with self._lock:
            self._faults = {
                number: fault
                for number, fault in self._faults.items()
                if organization_id is not None and fault.organization_id != organization_id
            }

    def view(self) -> list[dict[str, Any]]:
        """As the control surface shows them."""
        with self._lock:
            return [{"id": number, **fault.view()} for number, fault in self._faults.items()]

    @property
    def idle(self) -> bool:
        """Whether there is none."""
        return not self._faults

    @property
    def aimed(self) -> bool:
        """Whether any is for one organization."""
        return any(fault.organization_id is not None for fault in self._faults.values())

    def take(self, **names: Any) -> Kind | None:
        """The fault that strikes what has these names, if any."""
        with self._lock:
            faults = self._faults.values()
            return next((fault for fault in faults if fault.meets(**names) and fault.strikes()), None)


class PaymentFault(CountedFault):
    """What is wrong with matching pay calls (lab/docs/lab.md has the table); `invoice_id` is the invoice's own."""

    action: PaymentAction
    count: Annotated[int, Field(ge=0)] | None = None
    rail: MachineRail | None = None
    invoice_id: str | None = None


class WebhookFault(CountedFault):
    """What happens to matching attempts (lab/docs/lab.md has the table); `old_secret` needs a changed secret."""

    action: WebhookAction
    experiment_id: str | None = None
    webhook_id: str | None = None
    seconds: Annotated[float, Field(ge=0, lt=10**10)] | None = None  # of `delay` and `stale`

    def meets(self, **names: Any) -> bool:
        """Whether it is meant for an attempt, whose secret may be `rotated`, and which may be `holdable`."""
        rotated, holdable = names.pop("rotated"), names.pop("holdable")
        possible = (rotated or self.action != "old_secret") and (holdable or self.action not in HOLDING)
        return possible and super().meets(**names)
