"""The records of an order's log, one frozen model per kind. No record holds a secret, and no decision reads `at`."""

import os
import socket
from datetime import UTC, datetime
from typing import Annotated, Literal
from uuid import uuid4

from pydantic import AwareDatetime, Field

from prefect_assay.models.base import StoredModel
from prefect_assay.models.job import OrderRoute
from prefect_assay.models.vocabulary import MACHINE_RAILS, PaymentMethod
from prefect_assay.payments.ledger import PaymentAttempt


class Record(StoredModel):
    """A record: a random id, the wall clock's time, and the process that wrote it."""

    id: str = Field(default_factory=lambda: uuid4().hex)
    at: AwareDatetime = Field(default_factory=lambda: datetime.now(UTC))
    by: str = Field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}")


class Planned(Record):
    """The first record, written before anything else."""

    kind: Literal["planned"] = "planned"
    archive_id: str
    campaign_id: str


class Sending(Record):
    """Written right before a create is sent."""

    kind: Literal["sending"] = "sending"
    attempt: int
    route: OrderRoute
    rail: PaymentMethod

    @property
    def commits(self) -> bool:
        """Return True if the create accepts its quote and is billed in the same call (contract 4.2, rule 3)."""
        return self.route is OrderRoute.SELF_SERVICE and self.rail not in MACHINE_RAILS


class Refused(Record):
    """The create of an attempt was refused for certain, or never sent."""

    kind: Literal["refused"] = "refused"
    attempt: int
    reason: str


class Ordered(Record):
    """The experiment of this order, at most once. `invoice_id` is set only if the invoice names the experiment."""

    kind: Literal["ordered"] = "ordered"
    experiment_id: str
    invoice_id: str | None = None
    adopted: bool = False


class Surplus(Record):
    """An experiment with the key that is not the order, which is `kept`: never confirmed, never paid.

    The order moves to an older experiment only while nothing is committed.
    """

    kind: Literal["surplus"] = "surplus"
    experiment_id: str
    kept: str


class Approved(Record):
    """The order may cost this much, in US cents; `approver` is the rule or the person."""

    kind: Literal["approved"] = "approved"
    amount_cents: int
    approver: str


class Confirming(Record):
    """A quote is about to be confirmed."""

    kind: Literal["confirming"] = "confirming"
    amount_cents: int


class Paying(Record, PaymentAttempt):
    """A payment credential is about to leave."""

    kind: Literal["paying"] = "paying"


class InDoubt(Record):
    """The answer to a payment was lost, and the invoice does not show it."""

    kind: Literal["in_doubt"] = "in_doubt"
    remark: str | None = None


class NotSettled(Record):
    """The payment was refused for certain; nothing was paid."""

    kind: Literal["not_settled"] = "not_settled"
    remark: str | None = None


class Settled(Record):
    """The invoice is paid, by the last `paying` record or, without one, by other means."""

    kind: Literal["settled"] = "settled"
    invoice_id: str
    amount_cents: int | None
    receipt: dict[str, str] | None = None
    remark: str | None = None


class Withdrawn(Record):
    """The quote came to nothing: rejected, expired, or the experiment was canceled."""

    kind: Literal["withdrawn"] = "withdrawn"
    reason: str


OrderRecord = Annotated[
    Planned
    | Sending
    | Refused
    | Ordered
    | Surplus
    | Approved
    | Confirming
    | Paying
    | InDoubt
    | NotSettled
    | Settled
    | Withdrawn,
    Field(discriminator="kind"),
]
