"""Bodies and queries of the control surface. Strict, so that a misspelt field is refused and not ignored."""

from datetime import timedelta
from typing import Annotated, Literal

from fastapi import Query
from pydantic import ConfigDict, Field, model_validator

from assay_lab.kernel.refusals import Body
from assay_lab.kernel.settings import ClockMode
from assay_lab.vocabulary import WEBHOOK_SECRET_MIN_LENGTH, ExperimentStatus, PaymentMethod

# More than any test needs, and far from where dates and SQLite's numbers end.
_DAYS_MAX = 100_000
_EXPERIMENTS_MAX = 200_000
_Delay = Annotated[float, Field(ge=0, le=_DAYS_MAX)] | None


class _Query(Body):
    """A query string: everything in it is text, so numbers are read from text."""

    model_config = ConfigDict(strict=False)


class _OfOrganization(_Query):
    organization_id: str | None = None


class _OfJournal(_OfOrganization):
    after: Annotated[int, Field(ge=0)] = 0
    method: str = "*"
    path: str = "*"


class _OfDeliveries(_Query):
    after: Annotated[int, Field(ge=0, lt=2**63)] = 0
    experiment_id: str | None = None
    update_id: str | None = None


OfOrganization = Annotated[_OfOrganization, Query()]
JournalQuery = Annotated[_OfJournal, Query()]
DeliveriesQuery = Annotated[_OfDeliveries, Query()]


class Span(Body):
    """A length of lab time: the sum of its parts."""

    days: float = 0
    hours: float = 0
    minutes: float = 0
    seconds: float = 0

    @model_validator(mode="after")
    def _bounded(self) -> "Span":
        if not 0 <= self.total_days() <= _DAYS_MAX:
            raise ValueError(f"a span lies between 0 and {_DAYS_MAX} days")
        return self

    def total_days(self) -> float:
        """The sum in days; unlike a `timedelta` it cannot overflow."""
        return self.days + self.hours / 24 + self.minutes / 1440 + self.seconds / 86_400

    def delta(self) -> timedelta:
        """The sum as a `timedelta`."""
        return timedelta(days=self.days, hours=self.hours, minutes=self.minutes, seconds=self.seconds)


class Advance(Span):
    """How far a clock moves: a span, or `until` "next", "idle" or a time."""

    until: str | None = None
    organization_id: str | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "Advance":
        if self.until is not None and self.total_days():
            raise ValueError("either a span or until")
        return self


class Mode(Body):
    """How a clock runs."""

    mode: ClockMode
    seconds_per_day: Annotated[float, Field(gt=0, le=86_400)] | None = None
    organization_id: str | None = None


class FixPlan(Body):
    """Fixed delays of one experiment, or of all that an organization orders from now on; absent ones are drawn."""

    quote_minutes: _Delay = None
    review_minutes: _Delay = None
    window_days: _Delay = None
    organization_id: str | None = None
    experiment_id: str | None = None


class Fill(Body):
    """`experiments` of so many `sequences`; `submitted` waits for its quote, `ordered` has accepted it."""

    experiments: Annotated[int, Field(ge=1, le=_EXPERIMENTS_MAX)]
    stage: Literal["draft", "submitted", "ordered"] = "draft"
    sequences: Annotated[int, Field(ge=1, le=96)] = 1
    organization_id: str | None = None


class Seed(Body):
    """A further organization, named by its slug unless it has a `name`."""

    slug: Annotated[str, Field(max_length=60)]
    name: str | None = None
    payment_policy: list[Annotated[PaymentMethod, Field(strict=False)]] | None = None
    webhook_secret: Annotated[str, Field(min_length=WEBHOOK_SECRET_MIN_LENGTH)] | None = None


class Event(Body):
    """An event of an experiment without further fields."""

    experiment_id: str


class ForceStatus(Event):
    """`force_status`."""

    status: ExperimentStatus


class UpdateText(Event):
    """`progress`, `error` and `fail_production`: the text of the update."""

    description: str = ""
    name: str | None = None


class PartialResults(Event):
    """`partial_results`: for these sequences by name, or for all."""

    sequences: Annotated[list[str], Field(min_length=1)] | None = None


class RevokeToken(Body):
    """`revoke_token`: the whole family of this token."""

    token_id: str


class PerSequence(Body):
    """A price for each sequence."""

    type: Literal["per_sequence"]
    price_per_sequence_cents: Annotated[int, Field(ge=0, le=10**9)]


class Lot(Body):
    """A lot and its price."""

    num_sequences: Annotated[int, Field(ge=1, le=10**6)]
    price_usdcent: Annotated[int, Field(ge=0, le=10**9)]


class PerLot(Body):
    """A price for each lot that is broken."""

    type: Literal["per_broken_lot"]
    lot_prices: Annotated[list[Lot], Field(min_length=1)]


class DecideTarget(Body):
    """`decide_custom_target`: the decision, and the self-service price of an approved target."""

    request_id: str
    approved: bool
    pricing: Annotated[PerSequence | PerLot, Field(discriminator="type")] | None = None
    reason: str | None = None


class Redelivery(Body):
    """A delivery once more; `identical` for the same bytes and signature."""

    identical: bool = False


class OptionalExperiment(Body):
    """One experiment, or all without an id."""

    experiment_id: str | None = None


class SignIn(Body):
    """The user who signs in."""

    email: str
