"""The service itself: health, its own description (contract 1), and feedback to its developers."""

from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from prefect_assay.errors import InvalidRequest
from prefect_assay.service.client import checks
from prefect_assay.service.client.decoding import build_act, make_shape_error, parse_model
from prefect_assay.service.client.http.request import (
    Answer,
    Operation,
    Request,
    drop_none,
    succeeded,
)
from prefect_assay.service.client.resources.resource import Resource
from prefect_assay.service.models.service import FeedbackReceipt, FeedbackType, Health, WireWords


class Service(Resource):
    """Health, the service's own description, and feedback."""

    def check_health(self) -> Health:
        """Ask whether the service answers: GET /info/health (published with contract 4). Needs no permission.

        Example:
            ```python
            print(client.service.check_health().ok)
            ```
        """
        request = Request(method="GET", path="/info/health", repeatable=True)
        return self._sender.run(Operation(request=request, read=_read_health))

    def check_database(self) -> Health:
        """Ask whether its database answers: GET /info/health-db (published with contract 4).

        `ok` is False for a 503, which is not an error here. Needs a living token, whatever it permits.

        Example:
            ```python
            print(client.service.check_database().ok)
            ```
        """
        operation = Operation(
            # not repeated: a 503 is the answer
            request=Request(method="GET", path="/info/health-db"),
            read=_read_health,
            accepts=lambda status: succeeded(status) or status == HTTPStatus.SERVICE_UNAVAILABLE,
        )
        return self._sender.run(operation)

    def get_openapi(self) -> dict[str, Any]:
        """Read the service's description in its own words: GET /openapi.json (contract 1).

        Needs no token; a partner's shows more.

        Example:
            ```python
            print(client.service.get_openapi()["info"]["version"])
            ```
        """
        request = Request(method="GET", path="/openapi.json", repeatable=True)
        return self._sender.run(Operation(request=request, read=_read_document))

    def submit_feedback(
        self,
        feedback_type: FeedbackType | str,
        request_uuid: str,
        *,
        title: str | None = None,
        human_note: str | None = None,
        json_body: Mapping[str, Any] | None = None,
    ) -> FeedbackReceipt:
        """Send a comment to the service's developers, once: POST /feedback/submit (published with contract 4).

        `request_uuid` names this message, `json_body` holds machine-readable details.

        Raises:
            InvalidRequest: with every finding; nothing was sent.
            OutcomeUnknown: the answer was lost.

        Example:
            ```python
            client.service.submit_feedback("feedback", str(uuid4()), title="Thank you")
            ```
        """
        InvalidRequest.check(
            [
                *checks.one_of("feedback_type", str(feedback_type), [*FeedbackType]),
                *checks.uuid("request_uuid", request_uuid),
            ]
        )
        body = drop_none(
            feedback_type=str(feedback_type),
            request_uuid=request_uuid,
            title=title,
            human_note=human_note,
            json_body=None if json_body is None else dict(json_body),
        )
        after_loss = "Sending it again may deliver it twice"
        return self._sender.run(build_act("POST", "/feedback/submit", FeedbackReceipt, after_loss, body))


def _read_health(answer: Answer) -> Health:
    """The status decides; the body may hold anything."""
    return parse_model(Health, {**answer.fields(), "ok": succeeded(answer.status)}, answer)


def _read_document(answer: Answer) -> dict[str, Any]:
    body = replace(answer, words=WireWords()).json()
    if not isinstance(body, dict) or not isinstance(body.get("paths"), dict):
        raise make_shape_error(answer, "no description of paths")
    return body
