"""Operations on the service itself: health, its own description, and feedback to its developers."""

from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from prefect_assay.errors import InvalidRequest
from prefect_assay.service.client import checks
from prefect_assay.service.client.decoding import off_shape, once, parsed
from prefect_assay.service.client.http.request import (
    Answer,
    Operation,
    Request,
    given,
    succeeded,
)
from prefect_assay.service.models.service import (
    FeedbackReceipt,
    FeedbackType,
    Health,
    WireWords,
)


def health() -> Operation[Health]:
    """GET /info/health. Needs no permission."""
    return Operation(request=Request(method="GET", path="/info/health", repeatable=True), read=_health)


def health_db() -> Operation[Health]:
    """GET /info/health-db: whether its database answers; `ok` is False for a 503, which is no error here.

    Needs a living token (contract 4), whatever it permits.
    """
    return Operation(
        # not repeated: a 503 is the answer
        request=Request(method="GET", path="/info/health-db"),
        read=_health,
        accepts=lambda status: succeeded(status) or status == HTTPStatus.SERVICE_UNAVAILABLE,
    )


def openapi() -> Operation[dict[str, Any]]:
    """GET /openapi.json: the service's own words (contract 1). Needs no token; a partner's shows more."""
    return Operation(request=Request(method="GET", path="/openapi.json", repeatable=True), read=_document)


def feedback(
    feedback_type: FeedbackType | str,
    request_uuid: str,
    *,
    title: str | None = None,
    human_note: str | None = None,
    json_body: Mapping[str, Any] | None = None,
) -> Operation[FeedbackReceipt]:
    """POST /feedback/submit, once; `request_uuid` names this message, `json_body` holds machine-readable details.

    Raises:
        InvalidRequest: with every finding; nothing was sent.
        OutcomeUnknown: the answer was lost.
    """
    InvalidRequest.check(
        [
            *checks.one_of("feedback_type", str(feedback_type), list(FeedbackType)),
            *checks.uuid("request_uuid", request_uuid),
        ]
    )
    body = given(
        feedback_type=str(feedback_type),
        request_uuid=request_uuid,
        title=title,
        human_note=human_note,
        json_body=None if json_body is None else dict(json_body),
    )
    return once("POST", "/feedback/submit", FeedbackReceipt, "Sending it again may deliver it twice", body)


def _health(answer: Answer) -> Health:
    """The status decides; the body may hold anything."""
    return parsed(Health, {**answer.fields(), "ok": succeeded(answer.status)}, answer)


def _document(answer: Answer) -> dict[str, Any]:
    body = replace(answer, words=WireWords()).json()
    if not isinstance(body, dict) or not isinstance(body.get("paths"), dict):
        raise off_shape(answer, "no description of paths")
    return body
