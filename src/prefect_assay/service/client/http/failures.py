"""The one error of the tree that an answer without success, or a missing answer, means (contract 7).

Pure. No text of the service reaches an error before the secrets of the request are cut out of it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final

from prefect_assay.errors import (
    AccessError,
    AssayError,
    Conflict,
    Forbidden,
    MixedAnswer,
    NotFound,
    OrderOutcomeUnknown,
    RateLimited,
    RequestRefused,
    ServiceUnavailable,
    Unauthorized,
    UnexpectedAnswer,
)
from prefect_assay.service.client.http.dates import http_date
from prefect_assay.service.client.http.request import (
    Answer,
    Operation,
    Request,
    T,
)
from prefect_assay.service.client.http.secrets import LENGTH_MIN, cut, scrubbed, spellings

_SHOWN: Final = 500
_PAYMENT_PROBLEMS: Final = "https://paymentauth.org/problems/"
_MESSAGES_MAX: Final = 200
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]+")
_SEPARATOR = re.compile(r"\s*(?:\n|;\s)\s*")
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_REDIRECTS: Final = range(300, 400)
_SERVER_ERRORS: Final = range(500, 600)
CLIENT_ERRORS: Final = frozenset(range(400, 500))
# The server or a proxy gave up on the request, which may have been handled; 499 is a proxy's "client closed request".
NO_VERDICT: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, 499})
# A server that answers these has not taken the request: no valid token, too large, not as described, too many.
_NOT_PASSED_ON: Final = frozenset(
    {
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.UNPROCESSABLE_ENTITY,
        HTTPStatus.TOO_MANY_REQUESTS,
    }
)
_KINDS: Final[dict[int, type[AssayError]]] = {
    HTTPStatus.UNAUTHORIZED: Unauthorized,
    HTTPStatus.FORBIDDEN: Forbidden,
    HTTPStatus.METHOD_NOT_ALLOWED: AccessError,
    HTTPStatus.CONFLICT: Conflict,
}
_HINTS: Final[dict[int, str]] = {
    HTTPStatus.UNAUTHORIZED: ". Set a valid API token: this one is unknown, revoked or expired",
    HTTPStatus.FORBIDDEN: ". Use a token whose role and restrictions allow this",
    HTTPStatus.METHOD_NOT_ALLOWED: ". Check the service's address",
}
_EXPIRED_HINT: Final = ". Create a new API token in the portal, and set it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An error body: `genuine` if the service wrote it, `foreign` if it is not a JSON object."""

    messages: tuple[str, ...]
    fields: dict[str, Any]
    code: str | None = None
    request_id: str | None = None
    foreign: bool = False
    genuine: bool = False

    @property
    def text(self) -> str:
        """All messages in one line."""
        return "; ".join(self.messages)


def problem_of(answer: Answer) -> Problem:
    """Read an error body (contract 2.12 and 7), whatever it is. Never raises."""
    try:
        body = answer.json()
    except UnexpectedAnswer:
        return _foreign(answer)
    if not isinstance(body, dict):
        return _foreign(answer)
    messages = _messages(body.get("error"))
    hint = body.get("hint")  # service-shapes, submit 409
    if isinstance(hint, str) and hint.strip():
        messages = (*messages, _line(hint))
    code = body.get("code") or body.get("error_kind")
    request_id = body.get("request_id")
    stated = isinstance(body.get("error"), str | list) and bool(body["error"])
    return Problem(
        messages=messages or (_reason(answer.status),),
        fields=body,
        code=code if isinstance(code, str) else None,
        request_id=answer.header_request_id or (request_id if isinstance(request_id, str) else None),
        genuine=stated or str(body.get("type")).startswith(_PAYMENT_PROBLEMS),
    )


def _foreign(answer: Answer) -> Problem:
    text = answer.content[: 4 * _SHOWN].decode(errors="replace").strip()
    if not text:
        shown = f"{_reason(answer.status)}, with an empty body"
    elif answer.content_type == "text/plain":
        shown = _line(text)
    else:
        shown = f"{_reason(answer.status)}, with a body that is not the service's JSON"
    return Problem(messages=(shown,), fields={}, request_id=answer.header_request_id, foreign=bool(text))


def _messages(value: object) -> tuple[str, ...]:
    """Several validation errors come in one answer (contract 2.2): as one text, or as a list."""
    if isinstance(value, str):
        parts = [part.lstrip("-*• ").strip() for part in _SEPARATOR.split(value.strip())]
        # "Validation failed:" above its list is a headline, not a finding
        findings = [part for part in parts if part and not (part.endswith(":") and len(parts) > 1)]
        return tuple(_line(part) for part in findings[:_MESSAGES_MAX])
    if isinstance(value, list):
        texts = (item for item in value[:_MESSAGES_MAX] if isinstance(item, str))
        return tuple(_line(text) for text in texts if text.strip())
    return ()


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase.lower()
    except ValueError:
        return "no reason given"


def _line(text: str) -> str:
    """One bounded line without control characters: it may end in a terminal or a log."""
    clean = " ".join(_CONTROL.sub(" ", text).split())
    return clean if len(clean) <= _SHOWN else clean[: _SHOWN - 3] + "..."


def result(operation: Operation[T], answer: Answer, secrets: Iterable[str] = ()) -> T:
    """Read an accepted answer; raise the error that any other answer means."""
    request = operation.request
    hidden = (*secrets, *request.secrets)
    if not operation.accepts(answer.status):
        answer = scrubbed(answer, hidden)
    elif not operation.secret:  # its texts end in events, artifacts, logs and the archive
        answer = scrubbed(answer, (secret for secret in hidden if len(secret) >= LENGTH_MIN))
    if not operation.accepts(answer.status):
        raise operation.failed(answer) or failure(request, answer)
    unexpected: UnexpectedAnswer | MixedAnswer
    try:
        return operation.read(answer)
    except (UnexpectedAnswer, MixedAnswer) as error:
        unexpected = error
    spelt = spellings(hidden)
    message, request_id = cut(unexpected.message, spelt), cut(unexpected.request_id or "", spelt) or None
    if request.lost is not None:  # it was handled, and the answer cannot be read
        raise no_answer(request, message, request_id=request_id, status=answer.status)
    if isinstance(unexpected, MixedAnswer):
        raise MixedAnswer(f"{request}: {message}. It is not used", request_id=request_id)
    raise UnexpectedAnswer(
        f"{request}: {message}. Check the service's address, or upgrade this package",
        request_id=request_id,
        status_code=answer.status,
    )


def no_connection(request: Request, cause: str) -> ServiceUnavailable:
    """The error for a request that never left: it cannot have taken effect."""
    return ServiceUnavailable(f"{request}: no connection to the service ({cause}); nothing was sent")


def too_large(
    request: Request, cause: object, status: int, advice: str = "Check the service's address"
) -> AssayError:
    """The error for an answer over its limit. A repeat would bring it again, so a reading request ends here."""
    if request.lost is not None:
        return no_answer(request, f"the answer is {cause}", status=status)
    return UnexpectedAnswer(f"{request}: the answer is {cause}. {advice}", status_code=status)


def no_answer(
    request: Request, cause: str, *, request_id: str | None = None, status: int | None = None
) -> AssayError:
    """The error for a request that left and got no usable answer."""
    if request.lost is None:
        return ServiceUnavailable(f"{request}: {cause}", request_id=request_id, status_code=status)
    return request.lost(
        f"{request}: {cause}; whether it took effect is not known. {request.after_loss}".rstrip(),
        request_id=request_id,
        status_code=status,
    )


def failure(request: Request, answer: Answer) -> AssayError:
    """The error that a status means (contract 7)."""
    problem = problem_of(answer)
    text = f"{request}: the service answered {answer.status}: {problem.text}"
    status = answer.status
    # A refusal that is not the service's may come from a gateway that has passed the request on; an order waits for a person
    # then, so what no gateway answers after passing one on is a refusal of it.
    certain = request.lost is OrderOutcomeUnknown and status in _NOT_PASSED_ON
    gateway = request.lost is not None and status in CLIENT_ERRORS and not (problem.genuine or certain)
    if gateway or status in NO_VERDICT or status in _SERVER_ERRORS:
        cause = f"the service answered {status}: {problem.text}"
        return no_answer(request, cause, request_id=problem.request_id, status=status)
    if status in _REDIRECTS:
        return _redirected(request, answer, problem)
    kind = _KINDS.get(status)
    if kind is not None:
        expired = status == HTTPStatus.UNAUTHORIZED and "expired" in problem.text.lower()
        hint = _EXPIRED_HINT if expired else _HINTS.get(status, "")
        error = kind(f"{text}{hint}", request_id=problem.request_id, status_code=status)
        if isinstance(error, Conflict):
            error.code = problem.code  # service-shapes, submit 409
        return error
    if status == HTTPStatus.NOT_FOUND:
        return _absent(request, problem, text, status)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return RateLimited(text, retry_after=retry_after(answer), request_id=problem.request_id)
    return RequestRefused(
        text, errors=problem.messages, code=problem.code, request_id=problem.request_id, status_code=status
    )


def _absent(request: Request, problem: Problem, text: str, status: int) -> NotFound:
    if problem.foreign:  # not a page of the service: waiting would never end
        return NotFound(
            f"{text}. Check the service's address", request_id=problem.request_id, status_code=status
        )
    error = request.absent(text, request_id=problem.request_id, status_code=status)
    error.genuine = problem.genuine
    return error


def undecided(answer: Answer) -> UnexpectedAnswer:
    """The error for a refusal that decides nothing, such as a gateway's: the same request may succeed later."""
    problem = problem_of(answer)
    return UnexpectedAnswer(
        f"the service answered {answer.status}: {problem.text}",
        request_id=problem.request_id,
        status_code=answer.status,
    )


def _redirected(request: Request, answer: Answer, problem: Problem) -> AssayError:
    """The API does not redirect; following would send the token elsewhere."""
    cause = f"the service answered {answer.status}, a redirect; set the address it really has as base_url"
    if request.lost is not None:
        return no_answer(request, cause, request_id=problem.request_id, status=answer.status)
    return AccessError(f"{request}: {cause}", request_id=problem.request_id, status_code=answer.status)


def retry_after(answer: Answer, now: datetime | None = None) -> float | None:
    """Seconds to wait by `Retry-After`, which holds seconds or an HTTP date; None without a readable one."""
    value = answer.headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(value):  # the standard allows whole seconds only; fractions are accepted as well
        return float(value)
    moment = http_date(value)
    if moment is None:
        return None
    return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())
