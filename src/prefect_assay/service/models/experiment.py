"""Experiments: the create request and the service's answers (contract 2.1, 3 and 4.2)."""

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, SecretStr, StrictStr

from prefect_assay.service.models.base import (
    DECIDES,
    Model,
    Moment,
    WireModel,
)
from prefect_assay.service.models.billing import read_money
from prefect_assay.service.models.identifiers import Identifier, normalize_id
from prefect_assay.service.models.spec import ExperimentSpec
from prefect_assay.service.models.vocabulary import (
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


def _words(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


class PaymentPointer(WireModel):
    """Where and how to pay (contract 2.6). `kind` is `hosted_invoice` or `machine`."""

    kind: str | None = None
    hosted_invoice_url: str | None = None
    methods: Annotated[tuple[str, ...], BeforeValidator(_words)] = ()
    pay_url: str | None = None


class QuoteAcceptance(WireModel):
    """ConfirmQuoteResponse (contract 2.6); also the 200 answer of a create on a machine rail.

    Nothing in it decides whether the quote was accepted: the answer itself says so.
    """

    id: Identifier | None = None
    status: str | None = None
    hosted_invoice_url: str | None = None
    invoice_id: Identifier | None = None
    payment: PaymentPointer | None = None
    experiment_id: Identifier | None = None


class Created(WireModel):
    """The 201 answer of a create. Everything but the id is optional in practice.

    The shapes of the others are unspecified (contract 2.1): none of them may turn an order that is placed into one whose
    outcome is unknown.
    """

    experiment_id: Identifier
    experiment_code: str | None = None
    status: AnyExperimentStatus | None = None
    costs: dict[str, Any] | None = None
    error: str | None = None
    provider_invoice_id: Identifier | None = None
    provider_hosted_invoice_url: str | None = None


class ExperimentSummary(WireModel):
    """A list item (contract 2.1). A detail record may lack its code or its time, and call them as the create answer does."""

    id: Identifier = Field(validation_alias=AliasChoices("id", "experiment_id"))
    code: str = Field(
        default_factory=lambda known: known["id"], validation_alias=AliasChoices("code", "experiment_code")
    )
    name: str | None = None
    status: AnyExperimentStatus
    # Without a time, a deadline counts from now: it never ends a wait.
    created_at: Moment = Field(default_factory=lambda: datetime.now(UTC))
    results_status: Annotated[AnyResultsStatus, DECIDES] = ResultsStatus.NONE
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


class ExperimentRow(ExperimentSummary):
    """A list item whose `results_status` is required, as contract 2.1 has it: a campaign decides from the row."""

    results_status: AnyResultsStatus  # pyright: ignore[reportGeneralTypeIssues] - required, unlike in a detail record


class Experiment(ExperimentSummary):
    """The detail record: the list item plus specification and billing references, whose form the contract does not show."""

    experiment_spec: Any = None
    provider_quote_id: Identifier | None = None
    costs: dict[str, Any] | None = None

    @property
    def billed_cents(self) -> int | None:
        """The amount of the invoice by `costs` (service-shapes), in US cents; None where they do not say it."""
        costs = self.costs or {}
        return read_money(("amount_cents",), costs).cents if costs.get("type") == "invoiced" else None


class Modified(WireModel):
    """The answer of a PATCH; 200 also when nothing changed. The contract gives no types (9.4), and a number is not an id."""

    id: Annotated[StrictStr, AfterValidator(normalize_id)] | None = None
    message: str | None = None
    updated: bool | None = None


class Submitted(WireModel):
    """The answer of a submit; it returns before the quote exists (contract 3), and the contract does not show it."""

    experiment_id: Identifier | None = None
    previous_status: AnyExperimentStatus | None = None
    status: AnyExperimentStatus | None = None
    confirmed_at: Moment | None = None
    provider_invoice_url: str | None = None
