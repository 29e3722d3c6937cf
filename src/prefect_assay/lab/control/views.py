"""What the control surface answers, for type checkers; at run time these are plain dicts."""

from typing import Any, Literal, NotRequired, TypedDict


class ClockView(TypedDict):
    """An organisation's clock. `now` is UTC in ISO 8601; `steps` says how many things an advance made happen."""

    organization_id: str
    now: str
    mode: Literal["manual", "scaled", "auto"]
    seconds_per_day: float
    steps: NotRequired[int]


class JournalEntry(TypedDict):
    """One request to the API. `status` is None for one that was not handled, `answered` whether it was answered.

    `fault` names the fault that struck it, or `rate_limit`.
    """

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
    """A route fault: what was asked for, how many requests matched it and how many it hit."""

    id: int
    action: str
    method: NotRequired[str]
    path: NotRequired[str]
    organization_id: NotRequired[str]
    matched: int
    used: int
    waiting: bool


class RateLimitView(TypedDict):
    """The rate limit in force, if any, and how many requests it has refused."""

    limit: dict[str, Any] | None
    refused: int


class SnapshotView(TypedDict):
    """A snapshot. Entries of the journal after `journal_position` are younger than it."""

    id: str
    name: str | None
    journal_position: int


class Settlement(TypedDict):
    """A row of the lab's books; amounts in cents of USD."""

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
    """What of an experiment's course is fixed; everything else is drawn.

    `hold_quote` and `hold_review` stop it there until `release_quote` and `release_review`.
    """

    quote_minutes: float
    review_minutes: float
    window_days: float
    hold_quote: bool
    hold_review: bool
