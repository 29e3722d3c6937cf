"""The answers other than 200, by how the service reacts to them (contract 6, rule 3).

A 4xx is permanent, so it is given only for what will be wrong the next time, too. Whatever may be the receiver's own
fault, or temporary, is a 5xx: the service sends again.
"""

from http import HTTPStatus
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

RETRY_AFTER_SECONDS: Final = "5"
_CLOSE: Final = {"Connection": "close"}


class RefusedDelivery(HTTPException):
    """A 4xx: not a genuine delivery. `reason` is one word for it, used by counters."""

    def __init__(self, status: int, reason: str, detail: str, *, close: bool = False) -> None:
        """`close` where the rest of the body is not worth reading."""
        super().__init__(status, detail, headers=_CLOSE if close else None)
        self.reason = reason


class RetryLater(HTTPException):
    """A 503: the delivery may be genuine and should come again."""

    def __init__(self, reason: str, detail: str, *, close: bool = False) -> None:
        """`close` where the rest of the body has not come."""
        headers = {"Retry-After": RETRY_AFTER_SECONDS} | (_CLOSE if close else {})
        super().__init__(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers=headers)
        self.reason = reason


async def as_json(_: Request, error: Exception) -> Response:
    """Answer with the error's detail; the exception handler of the app."""
    assert isinstance(error, HTTPException)  # noqa: S101 - Starlette's signature is wider than what it passes
    return JSONResponse({"error": error.detail}, error.status_code, headers=error.headers)
