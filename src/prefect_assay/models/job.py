"""What this package makes of one experiment, stage by stage: order, payment, outcome.

Each stage takes the last one's value. Nothing here is a secret: these models stand in results and artifacts.
"""

from datetime import datetime
from enum import StrEnum

from prefect_assay.models.base import Model
from prefect_assay.models.vocabulary import AnyExperimentStatus, AnyResultsStatus, PaymentMethod


class OrderRoute(StrEnum):
    """Self-service orders at the estimated price; quoted waits for a quote first."""

    SELF_SERVICE = "self_service"
    QUOTED = "quoted"


class Order(Model):
    """An experiment that exists at the service, found or created."""

    order_key: str
    experiment_id: str
    experiment_code: str | None = None
    experiment_url: str | None = None
    status: AnyExperimentStatus
    adopted: bool  # True: it existed already (an earlier run, or a create whose answer was lost)
    surplus: tuple[str, ...] = ()  # other experiments that carry the order key: unpaid and not confirmed
    hosted_invoice_url: str | None = None  # from the create answer; the service is asked again without it


class PaymentState(StrEnum):
    """Ledger states of one payment. Only `settled` means that money has moved for certain."""

    INTENDED = "intended"
    SENT = "sent"
    SETTLED = "settled"
    UNKNOWN = "unknown"
    FAILED = "failed"


class Payment(Model):
    """How an invoice stands after the pay step. `receipt` is the rail's own words; no credential in it.

    `remark` says what was odd about the answer to the payment; None when it was as it should be.
    """

    invoice_id: str | None
    method: PaymentMethod
    state: PaymentState
    amount_cents: int | None = None
    already_paid: bool = False
    hosted_invoice_url: str | None = None
    receipt: dict[str, str] | None = None
    remark: str | None = None


class OutcomeKind(StrEnum):
    """How the wait for an experiment ended."""

    DONE = "done"
    CANCELED = "canceled"
    QUOTE_REJECTED = "quote_rejected"
    QUOTE_EXPIRED = "quote_expired"
    OVERDUE = "overdue"


class Outcome(Model):
    """How one experiment ended, as the service last told it."""

    kind: OutcomeKind
    experiment_id: str
    experiment_code: str
    status: AnyExperimentStatus
    results_status: AnyResultsStatus
    checked_at: datetime
