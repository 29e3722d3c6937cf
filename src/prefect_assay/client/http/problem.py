"""Reads an error body (contract 2.12 and 7), whatever its form. Never raises."""

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from prefect_assay.client.http.request import Answer
from prefect_assay.errors import UnexpectedAnswer

_SHOWN: Final = 500
_PAYMENT_PROBLEMS: Final = "https://paymentauth.org/problems/"
_MESSAGES_MAX: Final = 200
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]+")
_SEPARATOR = re.compile(r"\s*(?:\n|;\s)\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The content of an error body: `genuine` if the service wrote it, `foreign` if it is no JSON object."""

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
    """Read an error body of any form."""
    try:
        body = answer.json()
    except UnexpectedAnswer:
        return _foreign(answer)
    if not isinstance(body, dict):
        return _foreign(answer)
    messages = _messages(
        next((body[k] for k in ("error", "errors", "message", "detail") if body.get(k)), None)
    )
    hint = body.get("hint")  # service-shapes, submit 409
    if isinstance(hint, str) and hint.strip():
        messages = (*messages, _line(hint))
    code = body.get("code") or body.get("error_kind") or body.get("error_code")
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
    if isinstance(value, dict):
        return _of_mapping(value)
    if isinstance(value, list):
        return tuple(message for item in value[:_MESSAGES_MAX] for message in _of_item(item))
    return ()


def _of_item(item: object) -> tuple[str, ...]:
    if isinstance(item, dict):
        return _of_mapping(item)
    return (_line(item),) if isinstance(item, str) and item.strip() else ()


def _of_mapping(item: dict[Any, Any]) -> tuple[str, ...]:
    text = next(
        (item[k] for k in ("message", "error", "msg", "detail") if isinstance(item.get(k), str)), None
    )
    if text is None:  # field name to messages
        return tuple(f"{_line(str(k))}: {m}" for k, v in item.items() for m in _messages(v))
    place = next((item[k] for k in ("field", "path", "loc", "pointer") if item.get(k)), None)
    where = ".".join(map(str, place)) if isinstance(place, list) else place
    return (_line(f"{where}: {text}" if where else text),)


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase.lower()
    except ValueError:
        return "no reason given"


def _line(text: str) -> str:
    """One bounded line without control characters: it may end in a terminal or a log."""
    clean = " ".join(_CONTROL.sub(" ", text).split())
    return clean if len(clean) <= _SHOWN else clean[: _SHOWN - 3] + "..."
