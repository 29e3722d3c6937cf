"""The pay path (contract 4.5): send at most once, and return the answer whatever its status.

A 402 is an answer here, not an error: it carries the challenge. This module reads no challenge and no credential.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from prefect_assay.client.http.failures import CLIENT_ERRORS, NO_VERDICT
from prefect_assay.client.http.problem import problem_of
from prefect_assay.client.http.request import Answer, Operation, Request, segment, succeeded
from prefect_assay.errors import ConfigurationError, PaymentOutcomeUnknown, UnexpectedAnswer

# 409: the experiment is pinned to another method (contract 4.2).
_PROBE_ANSWERS: Final = frozenset({HTTPStatus.PAYMENT_REQUIRED, HTTPStatus.CONFLICT})


@dataclass(frozen=True, slots=True, kw_only=True)
class PayAnswer:
    """Answer of the pay path. `headers` have lower-case names; `body` is empty if it is no JSON object."""

    status_code: int
    headers: Mapping[str, str]
    body: dict[str, Any] = field(repr=False)


def pay(invoice_id: str, headers: Mapping[str, str] | None = None) -> Operation[PayAnswer]:
    """POST /invoices/{id}/pay, once.

    Without headers this is the probe, which can move no money: 2xx, 402 and 409 are answers, the rest are errors.
    With the headers of a credential every verdict below 500 is an answer, because even a 403 may mean that an
    earlier sending has paid. A 4xx other than 402 whose body is not the service's is no verdict.

    Args:
        invoice_id: the invoice.
        headers: the credential, in the headers its rail names.

    Raises:
        PaymentOutcomeUnknown: a credential was sent and its answer was lost: read the invoice.
        ConfigurationError: the headers would replace the bearer token.
    """
    sent = dict(headers or {})
    if any(name.lower() == "authorization" for name in sent):
        raise ConfigurationError(
            "a payment credential in Authorization would replace the bearer token; only challenges that name "
            "another header can be answered. Nothing was sent"
        )
    return Operation(
        request=Request(
            method="POST",
            path=f"/invoices/{segment(invoice_id)}/pay",
            headers=sent,
            lost=PaymentOutcomeUnknown if sent else None,
            after_loss="Read the invoice before anything else; never pay again",
            secrets=tuple(sent.values()),
        ),
        read=_verdict if sent else _pay_answer,
        accepts=_is_verdict if sent else _answers_probe,
        scrubs=True,
    )


def _answers_probe(status: int) -> bool:
    return succeeded(status) or status in _PROBE_ANSWERS


def _is_verdict(status: int) -> bool:
    return succeeded(status) or (status in CLIENT_ERRORS and status not in NO_VERDICT)


def _verdict(answer: Answer) -> PayAnswer:
    """A refusal counts if the service wrote it. The challenge of a 402 is in its headers, whatever the body."""
    status, problem = answer.status, problem_of(answer)
    if not (succeeded(status) or status == HTTPStatus.PAYMENT_REQUIRED or problem.genuine):
        raise UnexpectedAnswer(
            f"the service answered {status}: {problem.text}", request_id=problem.request_id
        )
    return _pay_answer(answer)


def _pay_answer(answer: Answer) -> PayAnswer:
    """The status decides; a body that cannot be read must not turn a payment into an error."""
    try:
        body = answer.json()
    except UnexpectedAnswer:
        body = {}
    return PayAnswer(
        status_code=answer.status,
        headers=dict(answer.headers),
        body=body if isinstance(body, dict) else {},
    )
