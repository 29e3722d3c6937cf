"""A request, an answer, and the operation that joins them: data and pure functions without httpx, sockets or time."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

from prefect_assay.errors import (
    AssayError,
    InputError,
    NotFound,
    OutcomeUnknown,
    UnexpectedAnswer,
)
from prefect_assay.service.models.answer_json import read_json
from prefect_assay.service.models.service import WireWords

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Parameters = tuple[tuple[str, str], ...]

JSON_TYPE: Final = "application/json"
_REQUEST_ID_MAX: Final = 200


class _NoBody:
    """No body; `None` would be the JSON value null."""

    def __repr__(self) -> str:
        return "NO_BODY"


NO_BODY: Final = _NoBody()


class Unset(Enum):
    """A field that a change does not name; None clears it."""

    UNSET = "unset"


UNSET: Final = Unset.UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, before anything is sent. Bodies and headers may hold secrets, so its repr shows neither.

    `json` and `headers` are in neutral words, the ids in `path` (below `/api/v1`) already quoted.
    """

    method: str
    path: str
    params: Parameters = ()
    json: object = field(default=NO_BODY, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    repeatable: bool = False  # the same request may be sent again without a second effect
    # What a missing or unreadable answer means; None where nothing can have taken effect
    lost: type[OutcomeUnknown] | None = None
    after_loss: str = ""  # the next step in that error's message
    absent: type[NotFound] = NotFound  # what a 404 means
    # Values that must not come back in an error's text
    secrets: tuple[str, ...] = field(default=(), repr=False)
    # Findings for a service on any other machine; with one, nothing is sent there
    unless_local: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def content(self, words: WireWords | None = None) -> bytes | None:
        """The body in this deployment's words, or None; InputError if it is not JSON, such as NaN."""
        if isinstance(self.json, _NoBody):
            return None
        try:
            body = words.to_wire(self.json) if words else self.json
            return json.dumps(body, allow_nan=False, ensure_ascii=False).encode()
        except (TypeError, ValueError) as error:
            raise InputError(f"{self}: the body is not valid JSON ({error}); nothing was sent") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the service sent back. Header names are lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes = field(default=b"", repr=False)
    words: WireWords = field(default_factory=WireWords)

    @property
    def content_type(self) -> str:
        """The media type without its parameters, lower case; may be empty."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def json(self) -> Any:
        """The body in neutral words; UnexpectedAnswer if it is not JSON."""
        try:
            body = read_json(self.content)
        except ValueError:
            raise UnexpectedAnswer(
                f"status {self.status} with a body that is not JSON ({len(self.content)} bytes, "
                f"{self.content_type or 'no content type'})",
                request_id=self.header_request_id,
                status_code=self.status,
            ) from None
        return self.words.from_wire(body)

    @property
    def is_json(self) -> bool:
        """Whether the body is JSON, whatever its type says."""
        try:
            read_json(self.content)
        except ValueError:
            return False
        return True

    def fields(self) -> dict[str, Any]:
        """The fields of a JSON object, in neutral words; empty for any other body."""
        try:
            body = self.json()
        except UnexpectedAnswer:
            return {}
        return body if isinstance(body, dict) else {}

    @property
    def header_request_id(self) -> str | None:
        """The request's id from `x-request-id`; the body may carry it as well."""
        value = self.headers.get("x-request-id", "").strip()
        return value[:_REQUEST_ID_MAX] if value.isprintable() and value else None


def succeeded(status: int) -> bool:
    """Any 2xx."""
    return 200 <= status < 300  # noqa: PLR2004 - the HTTP ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Generic[T_co]):
    """A request and the reader of its answer."""

    request: Request
    # From an accepted answer to a value; raises UnexpectedAnswer when it is off-shape
    read: Callable[[Answer], T_co]
    accepts: Callable[[int], bool] = succeeded  # the statuses that `read` understands
    # A failure that this operation recognizes by the body, before its status is considered
    failed: Callable[[Answer], AssayError | None] = lambda _: None
    # The operation to carry out in its place, where an answer shows that nothing was done and that the service speaks
    # the earlier interface variant (contract 9.4)
    instead: Callable[[Answer], "Operation[T_co] | None"] = lambda _: None
    # The answer is a secret, such as a new token: nothing is cut out of it
    secret: bool = False


def quote_segment(value: str) -> str:
    """One path segment, quoted; InputError if it is empty or made of dots."""
    if not value.strip(". "):
        raise InputError(f"an id is needed, not {value!r}; nothing was sent")
    return quote(value, safe="")


def drop_none(**values: object) -> dict[str, object]:
    """The values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def encode_query(**values: object) -> Parameters:
    """Query parameters of the values that are set; booleans become `true` and `false`."""
    return tuple(
        (name, str(value).lower() if isinstance(value, bool) else str(value))
        for name, value in drop_none(**values).items()
    )
