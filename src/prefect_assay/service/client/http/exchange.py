"""When a request is sent again, where a download goes, and how much is taken in. Pure: sending is a function that is passed in.

Only requests that change nothing are repeated. A POST never is: the service has no idempotency key, so a repeat could
order or pay twice.
"""

import logging
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from urllib.parse import urljoin, urlsplit

from prefect_assay.errors import AccessError, AssayError, ConfigurationError, MixedAnswer, NotFound
from prefect_assay.service.client.http.address import (
    API_PREFIX,
    is_internal,
    is_loopback,
    is_protected,
    origin,
)
from prefect_assay.service.client.http.failures import failure, result, retry_after
from prefect_assay.service.client.http.request import Answer, Operation, Request
from prefect_assay.service.client.http.secrets import scrubbed

T = TypeVar("T")

REPEATED: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
# A megabyte of gzip can hold a gigabyte. The limits are far above what a service sends.
ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
DOWNLOAD_BYTES_MAX: Final = 10_000_000_000
# What httpx unpacks with the standard library. One coding only: a second one multiplies the size of what a single
# piece of the connection, at most 64 KiB, unpacks to.
ENCODINGS: Final = ("gzip", "deflate")

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_HOPS_MAX: Final = 5
# What a name resolver takes; anything else ends in an error of the code that looks the name up.
_HOST = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?")
_NO_ADDRESS: Final = "a download address that is not an https address is not fetched"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One request to send.

    A file has a `url` in place of the API's path. It may be signed, so the repr leaves it out. With `hides_path` its path
    may be the permission.
    """

    request: Request
    url: str | None = field(default=None, repr=False)
    with_token: bool = True
    hides_path: bool = False


# Returns an `Answer`, or the `AssayError` of an exchange without one; for a file also its open response.
Send = Callable[[Attempt], Any]
Sleep = Callable[[float], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Exponential back-off with full jitter; times are in seconds.

    The first wait is drawn from 0 to `first`, which doubles for each further one up to `longest`. A `Retry-After`
    longer than `patience` is not waited for here: the error carries it to the caller.
    """

    repeats: int = 4
    first: float = 0.5
    longest: float = 20.0
    patience: float = 60.0
    draw: Callable[[], float] = field(default=random.random)

    def delay(self, request: Request, tried: int, answer: Answer | None) -> float | None:
        """Seconds to wait before the next try, or None after the last; `tried` is how often it has been sent."""
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


def carry_out(
    operation: Operation[T], policy: RetryPolicy, secrets: tuple[str, ...], send: Send, sleep: Sleep
) -> T:
    """Send an operation, repeat it where its request allows, and read its answer; AssayError as it documents."""
    tried = 0
    while True:
        request = operation.request
        outcome: Answer | AssayError = send(Attempt(request=request))
        tried += 1
        wait = policy.delay(request, tried, outcome if isinstance(outcome, Answer) else None)
        if wait is not None:
            logger.info("%s failed, trying again in %.1f s", request, wait)
            sleep(wait)
            continue
        if isinstance(outcome, AssayError):
            raise outcome
        successor = operation.instead(outcome)
        if successor is not None:
            operation, tried = successor, 0
            continue
        try:
            return result(operation, outcome, secrets)
        except MixedAnswer as mixed:
            wait = policy.delay(request, tried, None)
            if wait is None:
                raise
            logger.info("%s, trying again in %.1f s", mixed, wait)
            sleep(wait)


class TooLarge(Exception):
    """An answer, or a file, over its limit."""


class Meter:
    """Counts the unpacked bytes of one answer; TooLarge over the limit, or for a packing that was not requested."""

    def __init__(self, headers: Mapping[str, str], limit: int) -> None:
        self._limit = limit
        self._bytes = 0
        coding = headers.get("content-encoding", "").strip().lower()
        if coding not in {"", "identity", *ENCODINGS}:
            raise TooLarge(f"packed as {coding[:40]!a}, which was not asked for")
        announced = headers.get("content-length", "")
        if announced.isdecimal():
            self._check(int(announced[:20]))

    @property
    def received(self) -> int:
        """How many bytes have come so far."""
        return self._bytes

    def count(self, piece: bytes) -> bytes:
        """Return the piece if everything up to its end is within the limit."""
        self._bytes += len(piece)
        self._check(self._bytes)
        return piece

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise TooLarge(f"larger than {self._limit:,} bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """A file to stream. `url` is absolute, or relative to the service's address; `absent` is what a 404 means."""

    url: str = field(repr=False)
    chunk_size: int = 1 << 16
    absent: type[NotFound] = NotFound
    max_bytes: int | None = None


def open_file(
    download: Download,
    base_url: str,
    policy: RetryPolicy,
    secrets: tuple[str, ...],
    send: Send,
    sleep: Sleep,
) -> tuple[Request, Any]:
    """Follow redirects and repeat failures until a response is open; return it with the request that it answers.

    The token goes to the service's own origin and never along a redirect: files are usually stored with another
    provider, whose addresses carry their own permission.

    Raises:
        AssayError: the file cannot be fetched.
    """
    start = _joined(f"{base_url}/", download.url)
    attempt = _hop(start, base_url, download.absent, with_token=_same_origin(start, base_url))
    hops = tried = 0
    while True:
        outcome = send(attempt)
        if isinstance(outcome, Answer) and outcome.status in _REDIRECTS:
            hops, tried = hops + 1, 0
            location = outcome.headers.get("location", "")
            if not location or hops == _HOPS_MAX:
                raise AccessError(f"{attempt.request}: redirected without end; the file cannot be fetched")
            target = _joined(attempt.url or "", location)
            attempt = _hop(target, base_url, download.absent, with_token=False)
            continue
        if not isinstance(outcome, Answer | AssayError):
            return attempt.request, outcome
        tried += 1
        wait = policy.delay(attempt.request, tried, outcome if isinstance(outcome, Answer) else None)
        if wait is not None:
            sleep(wait)
        elif isinstance(outcome, AssayError):
            raise outcome
        else:
            raise failure(attempt.request, scrubbed(outcome, secrets))


def _hop(url: str, base_url: str, absent: type[NotFound], *, with_token: bool) -> Attempt:
    place = _origin(url)
    # Addresses of files may carry their permission in the query or in the path; the API's own only in neither.
    hides_path = not (place == origin(base_url) and url.startswith(f"{base_url}{API_PREFIX}/"))
    shown = f"{place} (a file)" if hides_path else place + urlsplit(url).path
    host = urlsplit(url).hostname or ""
    if ":" not in host and not _HOST.fullmatch(host):
        raise AccessError(_NO_ADDRESS)
    if not (is_protected(url) and _may_ask(host, base_url)):
        raise AccessError(
            f"{shown} is not fetched: only https addresses of the service's own host, or of hosts outside private "
            "networks, are"
        )
    request = Request(method="GET", path=shown, repeatable=True, absent=absent)
    return Attempt(request=request, url=url, with_token=with_token, hides_path=hides_path)


def _may_ask(host: str, base_url: str) -> bool:
    """Addresses come from the service, and requests from a place that may see more than the service does."""
    service_host = urlsplit(base_url).hostname or ""
    if host == service_host or (is_loopback(host) and is_loopback(service_host)):
        return True
    return not is_internal(host)


def _joined(base: str, url: str) -> str:
    try:
        return urljoin(base, url)
    except ValueError:  # a broken IPv6 address
        raise AccessError(_NO_ADDRESS) from None


def _same_origin(url: str, base_url: str) -> bool:
    try:
        return origin(url) == origin(base_url)
    except ConfigurationError:
        return False


def _origin(url: str) -> str:
    try:
        return origin(url)
    except ConfigurationError:
        raise AccessError(_NO_ADDRESS) from None
