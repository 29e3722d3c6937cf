"""The calls of the control surface, one table for /_sim and `LocalLab` (lab/docs/lab.md). Imports no web framework."""

from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, NotRequired, TypedDict, TypeVar

Reply = TypeVar("Reply")
Item = TypeVar("Item")


@dataclass(frozen=True)
class Command(Generic[Reply]):
    """One call: method and path below /_sim. Its JSON answer has the shape `Reply`."""

    method: Literal["GET", "POST", "DELETE"]
    path: str


class Items(TypedDict, Generic[Item]):
    """A list, oldest first."""

    items: list[Item]


class ClockView(TypedDict):
    """An organization's clock. `now` is UTC in ISO 8601; `steps` counts the steps of the lab that an advance ran."""

    organization_id: str
    now: str
    mode: Literal["manual", "scaled", "auto"]
    seconds_per_day: float
    steps: NotRequired[int]


class JournalEntry(TypedDict):
    """One request to the API; `status` is None when it was not handled, `fault` the action of the fault that struck."""

    number: int
    method: str
    path: str
    query: str
    status: int | None
    request_id: str
    answered: bool
    fault: str | None
    idempotency_key: str | None
    organization_id: str | None
    token_id: str | None


class FaultView(TypedDict):
    """A route fault as requested, the requests that `matched` it, and those on which it was `used`."""

    id: int
    action: str
    method: str
    path: str
    organization_id: str | None
    matched: int
    used: int


class SettlementRow(TypedDict):
    """A row of the lab's ledger; amounts in cents of USD."""

    id: int
    invoice_id: str
    experiment_id: str
    payment_method: str
    amount_cents: int
    payer: str | None
    nonce: str | None
    reference: str | None
    settled_at: str


class Delays(TypedDict, total=False):
    """Fixed delays of an experiment; others are drawn."""

    quote_minutes: float
    review_minutes: float
    window_days: float


Record = dict[str, Any]

CLOCK: Final = Command[ClockView]("GET", "/clock")
ADVANCE_CLOCK: Final = Command[ClockView]("POST", "/clock/advance")
SET_CLOCK: Final = Command[ClockView]("POST", "/clock/mode")
JOURNAL: Final = Command[Items[JournalEntry]]("GET", "/journal")
SETTLEMENTS: Final = Command[Items[SettlementRow]]("GET", "/settlements")
RAIL: Final = Command[Record]("GET", "/rails/{method}")

FAULTS: Final = Command[Items[FaultView]]("GET", "/faults")
ADD_FAULT: Final = Command[FaultView]("POST", "/faults")
CLEAR_FAULTS: Final = Command[Record]("DELETE", "/faults")
REMOVE_FAULT: Final = Command[Record]("DELETE", "/faults/{fault_id}")
PAYMENT_FAULTS: Final = Command[Items[Record]]("GET", "/payment-faults")
ADD_PAYMENT_FAULT: Final = Command[Items[Record]]("POST", "/payment-faults")
CLEAR_PAYMENT_FAULTS: Final = Command[Record]("DELETE", "/payment-faults")
WEBHOOK_FAULTS: Final = Command[Items[Record]]("GET", "/webhook-faults")
ADD_WEBHOOK_FAULT: Final = Command[Items[Record]]("POST", "/webhook-faults")

DELIVERIES: Final = Command[Items[Record]]("GET", "/deliveries")
OUTBOX: Final = Command[Items[Record]]("GET", "/outbox")
RELEASE: Final = Command[dict[str, int]]("POST", "/deliveries/release")
REDELIVER: Final = Command[Items[Record]]("POST", "/deliveries/{number}/redeliver")

TRIGGER_EVENT: Final = Command[Record]("POST", "/events")
FIX_DELAYS: Final = Command[Delays]("POST", "/plan")
SEED: Final = Command[dict[str, str]]("POST", "/seed")
FILL: Final = Command[dict[str, list[str]]]("POST", "/experiments")
RESET: Final = Command[dict[str, str]]("POST", "/reset")
SIGN_IN_LINK: Final = Command[dict[str, str]]("POST", "/sign-in-links")
END_SESSIONS: Final = Command[dict[str, int]]("DELETE", "/sessions")
