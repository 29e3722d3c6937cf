"""Experiments: the create request and the service's answers (contract 2.1, 3 and 4.2)."""

from typing import Any

from pydantic import Field, SecretStr

from prefect_assay.models.base import Maybe, Model, Moment, WireModel
from prefect_assay.models.spec import ExperimentSpec
from prefect_assay.models.vocabulary import (
    AnyExperimentStatus,
    AnyExperimentType,
    AnyResultsStatus,
    ExperimentStatus,
    PaymentMethod,
    ResultsStatus,
)


class CreateRequest(Model):
    """CreateExpRequest of contract 4.2."""

    experiment_spec: ExperimentSpec
    name: str
    skip_draft: bool = False
    auto_accept_quote: bool = False
    payment_method: PaymentMethod | None = Field(
        default=None, description="Machine rail; None leaves it to the caller's payment policy."
    )
    webhook_url: str | None = None
    webhook_secret: SecretStr | None = None

    def wire(self) -> dict[str, Any]:
        """The JSON body, with the webhook secret in plain text: only for the wire."""
        secret = self.webhook_secret
        body = {
            "experiment_spec": self.experiment_spec.wire(),
            "name": self.name,
            "skip_draft": self.skip_draft or None,
            "auto_accept_quote": self.auto_accept_quote or None,
            "payment": self.payment_method and {"method": str(self.payment_method)},
            "webhook_url": self.webhook_url,
            "webhook_secret": None if secret is None else secret.get_secret_value(),
        }
        return {name: value for name, value in body.items() if value is not None}


class PaymentPointer(WireModel):
    """Where and how to pay (contract 2.6). `kind` is `hosted_invoice` or `machine`."""

    kind: str
    hosted_invoice_url: str | None = None
    methods: tuple[str, ...] = ()
    pay_url: str | None = None


class QuoteAcceptance(WireModel):
    """ConfirmQuoteResponse (contract 2.6); also the 200 answer of a create on a machine rail."""

    id: str
    status: str
    hosted_invoice_url: str | None = None
    invoice_id: str | None = None
    payment: PaymentPointer | None = None
    experiment_id: str | None = None


class Created(WireModel):
    """The 201 answer of a create. Everything but the id is optional in practice.

    The shapes of the others are unspecified (contract 2.1): none of them may turn an order that is placed into one whose
    outcome is unknown.
    """

    experiment_id: str
    experiment_code: Maybe[str] = None
    status: Maybe[AnyExperimentStatus] = None
    costs: Maybe[dict[str, Any]] = None
    error: Maybe[str] = None
    provider_invoice_id: Maybe[str] = None
    provider_hosted_invoice_url: Maybe[str] = None


class ExperimentSummary(WireModel):
    """A list item (contract 2.1)."""

    id: str
    code: str
    name: str | None = None
    status: AnyExperimentStatus
    created_at: Moment
    results_status: AnyResultsStatus = ResultsStatus.NONE
    experiment_type: AnyExperimentType | None = None
    experiment_url: str | None = None
    provider_quote_url: str | None = None
    provider_invoice_url: str | None = None

    @property
    def reported(self) -> AnyResultsStatus:
        """The results status to archive: `all` before Done is preliminary, as nothing is released yet (contract 3)."""
        if self.results_status == ResultsStatus.ALL and self.status != ExperimentStatus.DONE:
            return ResultsStatus.PARTIAL
        return self.results_status


class Experiment(ExperimentSummary):
    """The detail record: the list item plus specification and billing references."""

    experiment_spec: dict[str, Any] | None = None
    provider_quote_id: str | None = None
    costs: dict[str, Any] | None = None

    @property
    def billed_cents(self) -> int | None:
        """The amount of the invoice by `costs` (service-shapes), in US cents; None where they do not say it."""
        costs = self.costs or {}
        amount = costs.get("amount_cents")
        if costs.get("type") != "invoiced" or str(costs.get("currency") or "usd").lower() != "usd":
            return None
        return amount if type(amount) is int and amount >= 0 else None


class Modified(WireModel):
    """The answer of a PATCH; 200 also when nothing changed. The contract gives no types (9.4)."""

    id: Maybe[str] = None
    message: Maybe[str] = None
    updated: Maybe[bool] = None


class Submitted(WireModel):
    """The answer of a submit; it returns before the quote exists (contract 3), and the contract does not show it."""

    experiment_id: str
    previous_status: Maybe[AnyExperimentStatus] = None
    status: Maybe[AnyExperimentStatus] = None
    confirmed_at: Maybe[Moment] = None
    provider_invoice_url: Maybe[str] = None
