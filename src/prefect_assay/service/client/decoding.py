"""Reads accepted answers: tolerant of unknown fields, clear about missing ones. Also builds the usual operations."""

from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from prefect_assay.errors import NotFound, OutcomeUnknown, UnexpectedAnswer
from prefect_assay.service.client.http.request import (
    NO_BODY,
    Answer,
    Operation,
    Request,
)
from prefect_assay.service.models.base import Page

M = TypeVar("M", bound=BaseModel)

# `items` is the contract's; the others are the earlier variant's (contract 9.4).
_ROWS: Final = ("items", "results", "updates")
_LISTED: Final = 5


def make_model_reader(kind: type[M]) -> Callable[[Answer], M]:
    """Return a function that reads one object of an answer."""

    def read(answer: Answer) -> M:
        return parse_model(kind, answer.json(), answer)

    return read


def read_change(kind: type[M]) -> Callable[[Answer], M]:
    """A reader for the answer to a change. The contract does not show most of them; any may be without a body."""

    def read(answer: Answer) -> M:
        return parse_model(kind, answer.json() if answer.content.strip() else {}, answer)

    return read


def build_read(path: str, kind: type[M], absent: type[NotFound] = NotFound) -> Operation[M]:
    """GET one object; `absent` is what a 404 means."""
    return Operation(
        request=Request(method="GET", path=path, repeatable=True, absent=absent), read=make_model_reader(kind)
    )


def build_act(
    method: str,
    path: str,
    kind: type[M],
    after_loss: str,
    json: object = NO_BODY,
    *,
    secrets: tuple[str, ...] = (),
    unless_local: tuple[str, ...] = (),
    secret: bool = False,
) -> Operation[M]:
    """A request that is never repeated, answered with one object; `after_loss` is what to do without an answer."""
    return Operation(
        request=Request(
            method=method,
            path=path,
            json=json,
            lost=OutcomeUnknown,
            after_loss=after_loss,
            secrets=secrets,
            unless_local=unless_local,
        ),
        read=read_change(kind),
        secret=secret,
    )


@cache
def _all_rows(kind: type[BaseModel]) -> TypeAdapter[tuple[Any, ...]]:
    return TypeAdapter(tuple[kind, ...])  # type: ignore[valid-type]


def read_page(kind: type[M]) -> Callable[[Answer], Page[M]]:
    """A reader for a list answer (contract 4.1). A bare array is a list without paging words."""
    all_rows: TypeAdapter[tuple[M, ...]] = _all_rows(kind)

    def read(answer: Answer) -> Page[M]:
        rows, words = _read_rows(answer)
        try:
            items: tuple[M, ...] = all_rows.validate_python(rows)
        except ValidationError as error:
            raise _off_fields(answer, error) from None
        return Page[M].model_construct(  # every value is checked already
            items=items,
            total=_number(words.get("total"), len(items)),
            count=len(items),  # counted here: paging must not depend on the service's own count
            offset=_number(words.get("offset"), 0),
            next_cursor=_read_cursor(words),
        )

    return read


def read_raw_rows(answer: Answer) -> tuple[list[object], int, str | None]:
    """The rows of a list answer as received, the service's count of the whole list, and the cursor of its next page."""
    rows, words = _read_rows(answer)
    return rows, _number(words.get("total"), len(rows)), _read_cursor(words)


def _read_cursor(words: dict[str, Any]) -> str | None:
    """The cursor of the earlier variant (contract 9.4); the current interface has offsets only."""
    cursor = None if "items" in words else words.get("next_cursor")
    return cursor if isinstance(cursor, str) and cursor else None


def parse_model(kind: type[M], value: object, answer: Answer) -> M:
    """Validate one value; UnexpectedAnswer names the fields, never their values."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise _off_fields(answer, error) from None


def _off_fields(answer: Answer, error: ValidationError) -> UnexpectedAnswer:
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    return make_shape_error(answer, "; ".join(f"{_place(e['loc'])}: {e['msg']}" for e in problems[:_LISTED]))


def _place(location: tuple[int | str, ...]) -> str:
    """`name`, or in a list `row 3: name`; an error of the whole value has no location."""
    first, *further = location or ("body",)
    return (
        ".".join(map(str, location)) or "body"
        if isinstance(first, str)
        else f"row {first}: {'.'.join(map(str, further))}"
    )


def make_shape_error(answer: Answer, finding: str) -> UnexpectedAnswer:
    """The error for a readable answer that does not match the contract."""
    return UnexpectedAnswer(
        f"status {answer.status} with an answer that is not as described ({finding})",
        request_id=answer.header_request_id,
        status_code=answer.status,
    )


def _read_rows(answer: Answer) -> tuple[list[object], dict[str, Any]]:
    body = answer.json()
    rows = find_rows(body)
    if rows is None:
        raise make_shape_error(answer, "no list of items")
    return rows, body if isinstance(body, dict) else {}


def find_rows(body: object) -> list[object] | None:
    """The rows of a list answer, whatever their key is; None if it is not a list."""
    if isinstance(body, list):
        return body
    if not isinstance(body, dict):
        return None
    return next((rows for name in _ROWS if isinstance(rows := body.get(name), list)), None)


def _number(value: object, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default
