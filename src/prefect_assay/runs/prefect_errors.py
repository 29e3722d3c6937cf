"""Which errors of Prefect's client say that Prefect is away or busy, and not that it refuses.

It must not know who asked, nor what becomes of the question.
"""

from typing import Final

import httpx

BUSY: Final = frozenset({408, 429})


def is_busy(error: BaseException | None) -> bool:
    """Prefect has answered, and not with its last word."""
    return isinstance(error, httpx.HTTPStatusError) and (
        error.response.is_server_error or error.response.status_code in BUSY
    )


def is_away(error: BaseException | None) -> bool:
    """Prefect is busy, or has not answered at all."""
    return is_busy(error) or isinstance(error, httpx.TransportError)
