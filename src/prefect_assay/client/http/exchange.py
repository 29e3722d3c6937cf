"""One exchange with the service: when a request is sent again, and how much of an answer is taken in.

`carry_out` is the loop that both faces drive, a generator like httpx's `auth_flow`: it yields each `Attempt`, is sent
its outcome, and returns the value. Pure: the faces send and sleep.

Only requests that change nothing are repeated (GET, and the cost estimate). A POST never is: the service has no
idempotency key, so a repeat could order or pay twice.
"""

import logging
import random
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from prefect_assay.client.http.failures import result, retry_after
from prefect_assay.client.http.request import Answer, Operation, Request
from prefect_assay.errors import AssayError

T = TypeVar("T")

REPEATED: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
# A megabyte of gzip can hold a gigabyte. The limits are far above what a service sends.
ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
DOWNLOAD_BYTES_MAX: Final = 10_000_000_000
# What httpx unpacks with the standard library. One coding only: a second one multiplies the size of what a single
# piece of the connection, at most 64 KiB, unpacks to.
ENCODINGS: Final = ("gzip", "deflate")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One request to send.

    Attributes:
        request: what to send.
        wait: seconds to sleep before; None to send at once.
        url: address of a file, in place of a path of the API. It may be signed, so the repr leaves it out.
        with_token: whether the bearer token goes along.
    """

    request: Request
    wait: float | None = None
    url: str | None = field(default=None, repr=False)
    with_token: bool = True


# Sent in: an `Answer`, or the `AssayError` of an exchange without one; for a file also its open response.
Flow = Generator[Attempt, Any, T]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Exponential back-off with full jitter, bounded in number and in length.

    Attributes:
        repeats: at most this many repeats after the first try.
        first: seconds that the first wait is drawn from; doubled for each further one.
        longest: upper bound of a wait in seconds.
        patience: a longer `Retry-After` is not waited for here; the error carries it to the caller.
        draw: a number from 0 to 1.
    """

    repeats: int = 4
    first: float = 0.5
    longest: float = 20.0
    patience: float = 60.0
    draw: Callable[[], float] = field(default=random.random)

    def delay(self, request: Request, tried: int, answer: Answer | None) -> float | None:
        """Seconds to wait before the next try, or None after the last one.

        Args:
            request: what was sent.
            tried: how many times it has been sent so far.
            answer: what came back, if anything.
        """
        if not request.repeatable or tried > self.repeats:
            return None
        if answer is not None and answer.status not in REPEATED:
            return None
        drawn = self.draw() * min(self.longest, self.first * 2.0 ** (tried - 1))
        requested = retry_after(answer) if answer is not None else None
        if requested is None:
            return drawn
        # Above what is requested, never below; spread, so that many runs do not come back at once.
        return requested + drawn if requested <= self.patience else None


def carry_out(operation: Operation[T], policy: RetryPolicy, secrets: tuple[str, ...]) -> Flow[T]:
    """Send an operation, repeat it where its request allows, and read its answer.

    Raises:
        AssayError: as the operation documents.
    """
    tried = 0
    wait: float | None = None
    while True:
        request = operation.request
        outcome: Answer | AssayError = yield Attempt(request=request, wait=wait)
        tried += 1
        wait = policy.delay(request, tried, outcome if isinstance(outcome, Answer) else None)
        if wait is not None:
            logger.info("%s failed, trying again in %.1f s", request, wait)
            continue
        if isinstance(outcome, AssayError):
            raise outcome
        successor = operation.instead(outcome)
        if successor is None:
            return result(operation, outcome, secrets)
        operation, tried = successor, 0


class TooLarge(Exception):
    """An answer, or a file, over its limit."""


class Meter:
    """Counts the unpacked bytes of one answer, and stops at the limit.

    Raises:
        TooLarge: with the cause; also for a packing that was not requested.
    """

    def __init__(self, headers: Mapping[str, str], limit: int) -> None:
        self._limit = limit
        self._bytes = 0
        coding = headers.get("content-encoding", "").strip().lower()
        if coding not in {"", "identity", *ENCODINGS}:
            raise TooLarge(f"packed as {coding[:40]!a}, which was not asked for")
        announced = headers.get("content-length", "")
        if announced.isdecimal():
            self._check(int(announced[:20]))

    def count(self, piece: bytes) -> bytes:
        """Return the piece if everything up to its end is within the limit."""
        self._bytes += len(piece)
        self._check(self._bytes)
        return piece

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise TooLarge(f"larger than {self._limit:,} bytes")
