"""The service itself: its health, and what it is told (service-shapes, Tokens and identity)."""

from enum import StrEnum

from prefect_assay.models.base import Maybe, WireModel


class Health(WireModel):
    """How the service says it is; `ok` is the verdict of the HTTP status."""

    status: Maybe[str] = None
    db: Maybe[str] = None
    ok: bool = True


class FeedbackType(StrEnum):
    """What a message to the service's makers is."""

    FEATURE_REQUEST = "feature_request"
    FEEDBACK = "feedback"
    BUG_REPORT = "bug_report"


class FeedbackReceipt(WireModel):
    """The answer of a submitted message."""

    reference: Maybe[str] = None
    message: Maybe[str] = None
