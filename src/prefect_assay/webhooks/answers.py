"""The answers that are no success, by what the service does after them (contract 6, rule 3).

A 4xx is permanent, so it is given only for what will be wrong the next time too. Whatever may be the receiver's own
fault, or may pass, is a 5xx: the service sends again.
"""

from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

RETRY_AFTER_SECONDS: Final = "5"
_CLOSE: Final = {"Connection": "close"}


class Refused(HTTPException):
    """A 4xx: the delivery is not genuine, or not one at all. `reason` is one word for it, for counters."""

    def __init__(self, status: int, reason: str, detail: str, *, close: bool = False) -> None:
        """`close` where the rest of the body is not worth reading."""
        super().__init__(status, detail, headers=_CLOSE if close else None)
        self.reason = reason


class NotNow(HTTPException):
    """A 503: nothing is known against the delivery, and it should come again."""

    def __init__(self, reason: str, detail: str, *, close: bool = False) -> None:
        """`close` where the rest of the body has not come."""
        super().__init__(
            503, detail, headers={"Retry-After": RETRY_AFTER_SECONDS} | (_CLOSE if close else {})
        )
        self.reason = reason


async def as_json(_: Request, error: Exception) -> Response:
    """The exception handler of the app."""
    assert isinstance(error, HTTPException)  # noqa: S101 - Starlette's signature is wider than what it passes
    return JSONResponse({"error": error.detail}, error.status_code, headers=error.headers)
