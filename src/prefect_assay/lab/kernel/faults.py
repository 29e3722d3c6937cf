"""Faults added through the control surface: the list of one kind, and the faults of machine payments.

Payment faults let tests check a client's guard. They know nothing of the rails: `take` names what is wrong with one
pay call, and counts. A wrong term holds for the challenge and for the credential alike, so that a client without a
guard really pays it.
"""

import copy
import threading
from dataclasses import asdict, dataclass
from typing import Any, Final, Generic, Literal, Protocol, TypeVar, get_args

from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.models.vocabulary import PaymentMethod

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
PAYMENT_ACTIONS: Final = get_args(PaymentAction)
RAILS: Final = (PaymentMethod.X402_EXACT, PaymentMethod.MPP_SPT)


class _Fault(Protocol):
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

    def clear(self) -> None:
        """Drop all."""
        with self._lock:
            self._faults = []


@dataclass(slots=True)
class PaymentFault:
    """What is wrong with matching pay calls (docs/lab.md has the table of actions).

    Attributes:
        action: what is wrong.
        rail: only this rail's.
        count: how many pay calls it still hits; None for all until it is dropped.
        after: how many matching calls it lets pass first.
        organization_id: only this organisation's.
        invoice_id: only this invoice, by its own id.
        hits: calls hit so far.
    """

    action: PaymentAction
    rail: str | None = None
    count: int | None = None
    after: int = 0
    organization_id: str | None = None
    invoice_id: str | None = None
    hits: int = 0

    def hit(self, rail: str, organization_id: str, invoice_id: str) -> bool:
        """Whether this call is hit; counts it."""
        wanted = (self.rail, self.organization_id, self.invoice_id)
        pairs = zip(wanted, (rail, organization_id, invoice_id), strict=True)
        if self.count == 0 or any(only not in (None, value) for only, value in pairs):
            return False
        if self.after > 0:
            self.after -= 1
            return False
        self.count = None if self.count is None else self.count - 1
        self.hits += 1
        return True

    def view(self) -> dict[str, Any]:
        """As the control surface shows it."""
        return asdict(self)


class PaymentFaults(FaultList[PaymentFault]):
    """The payment faults; the first that hits a call happens."""

    def add(self, fault: PaymentFault) -> None:
        """Add a fault; invalid values are refused with 400."""
        _check(fault)
        self.append(fault)

    def take(self, rail: str, organization_id: str, invoice_id: str) -> str | None:
        """What is wrong with this call, if anything."""
        with self._lock:
            hit = (fault for fault in self._faults if fault.hit(rail, organization_id, invoice_id))
            found = next(hit, None)
            return found.action if found else None


def _check(fault: PaymentFault) -> None:
    if fault.action not in PAYMENT_ACTIONS:
        known = ", ".join(PAYMENT_ACTIONS)
        raise Refusal(400, f"unknown payment fault {fault.action!r}; known are {known}")
    if fault.rail is not None and fault.rail not in RAILS:
        raise Refusal(400, f"rail is {' or '.join(RAILS)}")
    if type(fault.after) is not int or fault.after < 0:
        raise Refusal(400, "after is a whole number from 0")
    if fault.count is not None and (type(fault.count) is not int or fault.count < 0):
        raise Refusal(400, "count is a whole number from 0, or null for all")
    if any(not isinstance(key, str | None) for key in (fault.organization_id, fault.invoice_id)):
        raise Refusal(400, "organization_id and invoice_id are ids")
