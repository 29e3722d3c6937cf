"""Failures that may pass, of the service and of Prefect's server."""

from typing import Final

import httpx

from prefect_assay.errors import (
    AssayError,
    UnexpectedAnswer,
)

BUSY: Final = frozenset({408, 429})


def is_temporary(error: BaseException) -> bool:
    """Return True if the same step may succeed later; a maintenance page with status 200 also counts."""
    return isinstance(error, UnexpectedAnswer) or (isinstance(error, AssayError) and error.retriable)


def is_busy(error: BaseException | None) -> bool:
    """Return True if Prefect answered that it cannot serve the request now."""
    return isinstance(error, httpx.HTTPStatusError) and (
        error.response.is_server_error or error.response.status_code in BUSY
    )


def is_unreachable(error: BaseException | None) -> bool:
    """Return True if Prefect is busy or did not answer."""
    return is_busy(error) or isinstance(error, httpx.TransportError)
