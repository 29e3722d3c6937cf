"""Bodies and queries of the control surface. Strict, because a misspelt wish must not pass for none."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Annotated, Literal

from fastapi import Query
from pydantic import ConfigDict, Field, model_validator

from prefect_assay.lab.kernel.bodies import Body
from prefect_assay.lab.kernel.settings import ClockMode
from prefect_assay.models.vocabulary import WEBHOOK_SECRET_MIN_LENGTH, ExperimentStatus, PaymentMethod

# More than any test needs, and far from where dates and SQLite's numbers end.
_DAYS_MAX = 100_000
_UNITS = {"days": 1.0, "hours": 24.0, "minutes": 1440.0, "seconds": 86_400.0}

Share = Annotated[float, Field(ge=0, le=1e9)]
EXPERIMENTS_MAX = 200_000


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
    """A length of lab time, as the sum of what is given."""

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
        """All parts together."""
        parts: Iterable[float] = (getattr(self, unit) / per_day for unit, per_day in _UNITS.items())
        return sum(parts)

    def delta(self) -> timedelta:
        """As the standard library has it."""
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


class FixedDelays(Body):
    """What is fixed about coming experiments; what is absent is drawn as ever."""

    quote_minutes: Annotated[float, Field(ge=0, le=_DAYS_MAX)] | None = None
    review_minutes: Annotated[float, Field(ge=0, le=_DAYS_MAX)] | None = None
    window_days: Annotated[float, Field(ge=0, le=_DAYS_MAX)] | None = None
    hold_quote: bool | None = None
    hold_review: bool | None = None


class FixPlan(FixedDelays):
    """Delays of one experiment, or of all that an organisation orders from now on."""

    organization_id: str | None = None
    experiment_id: str | None = None


class Fill(Body):
    """Many experiments at once, without requests.

    Attributes:
        experiments: how many.
        stage: `draft`, `submitted` (a quote follows) or `ordered` (the quote is accepted; the work follows).
        sequences: how many each has.
    """

    experiments: Annotated[int, Field(ge=1, le=EXPERIMENTS_MAX)]
    stage: Literal["draft", "submitted", "ordered"] = "draft"
    sequences: Annotated[int, Field(ge=1, le=96)] = 1
    organization_id: str | None = None


class SnapshotName(Body):
    """What the caller calls a snapshot."""

    name: Annotated[str, Field(max_length=200)] | None = None


class Seed(Body):
    """A further organisation.

    Attributes:
        slug: lower-case letters and digits, unique.
        name: for people; without it the slug.
        experiments: fills it with so many drafts.
        plan: fixes the delays of its experiments.
    """

    slug: Annotated[str, Field(max_length=60)]
    name: str | None = None
    payment_policy: list[Annotated[PaymentMethod, Field(strict=False)]] | None = None
    webhook_secret: Annotated[str, Field(min_length=WEBHOOK_SECRET_MIN_LENGTH)] | None = None
    experiments: Annotated[int, Field(ge=0, le=EXPERIMENTS_MAX)] = 0
    plan: FixedDelays | None = None


class Event(Body):
    """The event of an experiment that needs nothing more."""

    experiment_id: str


class ForceStatus(Event):
    """`force_status`."""

    status: ExperimentStatus


class Told(Event):
    """`progress` and `error`: what the customer reads."""

    description: str = ""
    name: str | None = None


class SlowQuote(Event, Span):
    """`slow_quote`: by how much the quote comes later."""


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
    """`decide_custom_target`: what staff say, and the self-service price of an approved target."""

    request_id: str
    approved: bool
    pricing: Annotated[PerSequence | PerLot, Field(discriminator="type")] | None = None
    reason: str | None = None


class Again(Body):
    """A delivery once more; `identical` for the same bytes and signature."""

    identical: bool = False


class AboutUpdate(Body):
    """An update, or an experiment's latest one."""

    update_id: str | None = None
    experiment_id: str | None = None


class OfOneExperiment(Body):
    """One experiment, or all without an id."""

    experiment_id: str | None = None


class NewSecret(Body):
    """Another webhook secret for an experiment or an organisation; null clears it."""

    secret: str | None = None
    experiment_id: str | None = None
    organization_id: str | None = None


class AskPaymentFault(Body):
    """A payment fault; `payment_faults` knows what its values may be."""

    action: str
    rail: str | None = None
    count: int | None = None
    after: int = 0
    organization_id: str | None = None
    invoice_id: str | None = None


class SignIn(Body):
    """Whose link to the portal is asked for."""

    email: str
