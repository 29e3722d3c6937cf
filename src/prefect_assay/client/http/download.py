"""Where a download goes, hop by hop, and which hop may carry the token. Pure.

The token goes to the service's own origin and never along a redirect: a data package or an invoice usually lies
with a storage provider or the payment provider, whose address carries its own permission.
"""

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urljoin, urlsplit

from prefect_assay.client.http.address import is_internal, is_loopback, is_protected, origin
from prefect_assay.client.http.failures import failure, scrubbed
from prefect_assay.client.http.request import Answer, Request
from prefect_assay.client.http.retry import RetryPolicy
from prefect_assay.errors import AccessError, AssayError, ConfigurationError, NotFound

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_HOPS_MAX: Final = 5
# What a name resolver takes; anything else ends in an error of whatever looks the name up.
_HOST = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?")
_NO_ADDRESS: Final = "a download address that is no https address is not fetched"


@dataclass(frozen=True, slots=True)
class Hop:
    """One address to ask. Addresses may be signed, so the repr leaves the query out."""

    url: str = field(repr=False)
    with_token: bool
    request: Request


class Download:
    """One download, until a success arrives.

    Args:
        base_url: the service's address, checked.
        url: absolute, or relative to the service.
        policy: how often an opening is tried.
        absent: what a 404 means.
    """

    def __init__(
        self, base_url: str, url: str, policy: RetryPolicy, absent: type[NotFound] = NotFound
    ) -> None:
        self._absent = absent
        self._base_url = base_url
        self._policy = policy
        self._hops = 1
        self._tried = 0
        start = _joined(f"{base_url}/", url)
        self.hop = self._hop(start, with_token=_same_origin(start, base_url))

    def after(self, outcome: Answer | AssayError, secrets: tuple[str, ...]) -> float:
        """What follows an opening that was no success: a new hop, or the same one after some seconds.

        Returns:
            Seconds to wait before asking `hop` (again).

        Raises:
            AssayError: the download has failed.
        """
        if isinstance(outcome, Answer) and outcome.status in _REDIRECTS:
            self.hop = self._redirected(outcome)
            self._tried = 0
            return 0.0
        self._tried += 1
        answer = outcome if isinstance(outcome, Answer) else None
        pause = self._policy.delay(self.hop.request, self._tried, answer)
        if pause is not None:
            return pause
        if isinstance(outcome, AssayError):
            raise outcome
        raise failure(self.hop.request, scrubbed(outcome, secrets))

    def _redirected(self, answer: Answer) -> Hop:
        self._hops += 1
        location = answer.headers.get("location", "")
        if not location or self._hops > _HOPS_MAX:
            raise AccessError(f"{self.hop.request}: redirected without end; the file cannot be fetched")
        return self._hop(_joined(self.hop.url, location), with_token=False)

    def _hop(self, url: str, *, with_token: bool) -> Hop:
        shown = _shown(url)
        host = urlsplit(url).hostname or ""
        if ":" not in host and not _HOST.fullmatch(host):
            raise AccessError(_NO_ADDRESS)
        if not (is_protected(url) and self._may_ask(host)):
            raise AccessError(
                f"{shown} is not fetched: only https addresses of the service's own host, or of hosts outside private "
                "networks, are"
            )
        request = Request(method="GET", path=shown, repeatable=True, absent=self._absent)
        return Hop(url=url, with_token=with_token, request=request)

    def _may_ask(self, host: str) -> bool:
        """Addresses come from the service, and requests from a place that may see more than the service does."""
        service_host = urlsplit(self._base_url).hostname or ""
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


def _shown(url: str) -> str:
    """The address without its query: signed addresses carry their permission there."""
    try:
        return origin(url) + urlsplit(url).path
    except ConfigurationError:
        raise AccessError(_NO_ADDRESS) from None
