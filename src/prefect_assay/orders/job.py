"""The stages of one experiment: order, payment, outcome. No secrets: results and artifacts contain these models."""

from enum import StrEnum

from prefect_assay.service.models.base import Model
from prefect_assay.service.models.vocabulary import AnyExperimentStatus, PaymentMethod


class OrderRoute(StrEnum):
    """Self-service orders at the estimated price; quoted waits for a quote."""

    SELF_SERVICE = "self_service"
    QUOTED = "quoted"


class Order(Model):
    """An experiment that exists at the service, found or created."""

    order_key: str
    experiment_id: str
    experiment_code: str | None = None
    experiment_url: str | None = None
    status: AnyExperimentStatus
    adopted: bool  # it existed already: an earlier run, or a create whose answer was lost
    surplus: tuple[str, ...] = ()  # other experiments with the order key: unpaid and not confirmed
    hosted_invoice_url: str | None = None  # from the create answer; read from the service without it


class PaymentState(StrEnum):
    """States of a payment in the log. Only `settled` proves that money has moved."""

    INTENDED = "intended"
    SENT = "sent"
    SETTLED = "settled"
    UNKNOWN = "unknown"
    FAILED = "failed"


class Payment(Model):
    """An invoice after the pay step.

    `receipt` has the rail's own words, without a credential; `remark` describes an unexpected answer to the payment.
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
    INCOMPLETE = "incomplete"  # released, and partial for longer than a week
    CANCELED = "canceled"
    OVERDUE = "overdue"
