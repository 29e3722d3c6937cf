"""Where a download goes, hop by hop, and which hop may carry the token. Pure.

The token goes to the service's own origin and never along a redirect: a data package or an invoice usually lies
with a storage provider or the payment provider, whose address carries its own permission.
"""

import re
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from prefect_assay.client.http.address import is_internal, is_loopback, is_protected, origin
from prefect_assay.client.http.exchange import Attempt, Flow, RetryPolicy
from prefect_assay.client.http.failures import failure, scrubbed
from prefect_assay.client.http.request import Answer, Request
from prefect_assay.errors import AccessError, AssayError, ConfigurationError, NotFound

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_HOPS_MAX: Final = 5
# What a name resolver takes; anything else ends in an error of the code that looks the name up.
_HOST = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?")
_NO_ADDRESS: Final = "a download address that is no https address is not fetched"


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """A file to stream. `url` is absolute, or relative to the service's address; `absent` is what a 404 means."""

    url: str = field(repr=False)
    chunk_size: int = 1 << 16
    absent: type[NotFound] = NotFound
    max_bytes: int | None = None


def open_file(
    download: Download, base_url: str, policy: RetryPolicy, secrets: tuple[str, ...]
) -> Flow[tuple[Request, Any]]:
    """Open a file: follow redirects and repeat failures, until an attempt is answered with an open response.

    Args:
        download: the file.
        base_url: the service's address, checked.
        policy: how often each hop is tried.
        secrets: values that must not show in an error.

    Returns:
        The last request and its open response.

    Raises:
        AssayError: the file cannot be fetched.
    """
    start = _joined(f"{base_url}/", download.url)
    attempt = _hop(start, base_url, download.absent, with_token=_same_origin(start, base_url))
    hops = tried = 0
    while True:
        outcome = yield attempt
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
            attempt = replace(attempt, wait=wait)
        elif isinstance(outcome, AssayError):
            raise outcome
        else:
            raise failure(attempt.request, scrubbed(outcome, secrets))


def _hop(url: str, base_url: str, absent: type[NotFound], *, with_token: bool) -> Attempt:
    shown = _without_query(url)
    host = urlsplit(url).hostname or ""
    if ":" not in host and not _HOST.fullmatch(host):
        raise AccessError(_NO_ADDRESS)
    if not (is_protected(url) and _may_ask(host, base_url)):
        raise AccessError(
            f"{shown} is not fetched: only https addresses of the service's own host, or of hosts outside private "
            "networks, are"
        )
    request = Request(method="GET", path=shown, repeatable=True, absent=absent)
    return Attempt(request=request, url=url, with_token=with_token)


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


def _without_query(url: str) -> str:
    """The address without its query: signed addresses carry their permission there."""
    try:
        return origin(url) + urlsplit(url).path
    except ConfigurationError:
        raise AccessError(_NO_ADDRESS) from None
