"""Strict schemas of the request bodies, for the lab alone.

Rules that join fields are in `validation`; `api/openapi.yaml` describes both.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from assay_lab.kernel.refusals import Body, MachineRail, accept_integral
from assay_lab.vocabulary import (
    REPLICATES_MAX,
    REPLICATES_MIN,
    WEBHOOK_SECRET_MIN_LENGTH,
    ExperimentType,
    Method,
)

Residues = str  # checked letter by letter in `validation`
TargetId = str
Text = Annotated[str, Field(min_length=1)]
Secret = Annotated[str, Field(min_length=WEBHOOK_SECRET_MIN_LENGTH)]
HttpsUrl = str  # checked in `validation`


class SequenceObject(Body):
    """The object form of a sequence value (contract 2.3)."""

    aa_string: Residues
    control: bool = False
    metadata: dict[str, Any] | None = None


def _form(value: Any) -> str:
    return "text" if isinstance(value, str) else "object"


SequenceValue = Annotated[
    Annotated[Residues, Tag("text")] | Annotated[SequenceObject, Tag("object")], Discriminator(_form)
]
Concentration = Annotated[float, Field(ge=0)]
Replicates = Annotated[int, Field(ge=REPLICATES_MIN, le=REPLICATES_MAX), BeforeValidator(accept_integral)]
Concentrations = Annotated[list[Concentration], Field(min_length=1)]


class ExperimentSpec(Body):
    """`experiment_spec` (contract 2.2)."""

    experiment_type: ExperimentType
    method: Method | None = None
    target_id: TargetId | None = None
    sequences: Annotated[
        dict[str, SequenceValue],
        Field(min_length=1, json_schema_extra={"propertyNames": {"pattern": r"\S"}}),
    ]
    n_replicates: Replicates | None = None
    antigen_concentrations: Concentrations | None = None
    parameters: dict[str, Any] | None = None


class PaymentSelector(Body):
    """`payment` (contract 4.2): machine rails only."""

    method: MachineRail


class CreateExperiment(Body):
    """CreateExpRequest (contract 4.2)."""

    experiment_spec: ExperimentSpec
    name: Text | None = None
    skip_draft: bool = False
    auto_accept_quote: bool = False
    payment: PaymentSelector | None = None
    webhook_url: HttpsUrl | None = None
    webhook_secret: Secret | None = None


class EstimateCost(Body):
    """The body of a cost estimate (contract 4.2)."""

    experiment_spec: ExperimentSpec


class _Entry(Body):
    aa_string: Residues
    control: bool = False
    metadata: Any = None


class SequenceEntry(_Entry):
    """One entry of a replacement list (contract 2.4)."""

    name: Text


class AddedSequence(_Entry):
    """One entry for the add-sequences endpoint (contract 2.4 and 4.3); one without a name gets one."""

    name: Text | None = None


class AddSequences(Body):
    """POST /sequences (contract 4.3)."""

    experiment_code: str
    sequences: Annotated[list[AddedSequence], Field(min_length=1)]


class ModifyExperiment(Body):
    """ModifyExpRequest: every field is optional (contract 4.2). Null clears target_id and webhook_url."""

    name: Text | None = None
    description: str | None = None
    target_id: TargetId | None = None
    antigen_concentrations: Concentrations | None = None
    n_replicates: Replicates | None = None
    parameters: dict[str, Any] | None = None
    sequences: Annotated[list[SequenceEntry], Field(min_length=1)] | None = None
    webhook_url: HttpsUrl | None = None


class ConfirmQuote(Body):
    """The confirm body: required, `{}` will do (service shapes, Quotes)."""

    purchase_order_number: str | None = None
    notes: str | None = None


class RejectQuote(Body):
    """The reject body (service shapes, Quotes)."""

    reason: Literal["price", "scope", "timeline", "budget", "other"]
    feedback: str | None = None


# The four characters of a classic accession, or the extended form that the PDB is moving to.
PDB_ID = r"^([0-9][A-Za-z0-9]{3}|(pdb|PDB)_[0-9A-Za-z]{8})$"


class RequestCustomTarget(Body):
    """POST /targets/request-custom: what the antigen is, by its residues or by its structure."""

    name: Text
    product_id: Text
    sequence: str | None = None
    pdb_id: Annotated[str, Field(pattern=PDB_ID)] | None = None


UUID = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"


class SubmitFeedback(Body):
    """POST /feedback/submit."""

    request_uuid: Annotated[str, Field(pattern=UUID)]
    feedback_type: Literal["feature_request", "feedback", "bug_report"]
    title: str | None = None
    json_body: Any = None
    human_note: str | None = None


class CreateWebhook(Body):
    """POST /webhooks: a public HTTPS address, and the headers that every delivery to it carries."""

    url: HttpsUrl
    secret: Secret | None = None
    headers: dict[str, str] | None = None


class ModifyWebhook(Body):
    """PATCH /webhooks/{webhook_id}: every field is optional. Null clears the secret."""

    url: HttpsUrl | None = None
    headers: dict[str, str] | None = None
    enabled: bool | None = None
    secret: Secret | None = None
