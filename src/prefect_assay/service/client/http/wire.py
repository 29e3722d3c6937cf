"""The edge to httpx: how requests leave, how answers arrive, and what a missing answer means.

No text of an httpx error reaches a message where it could quote a header that was sent.
"""

import logging
import os
import re
import ssl
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import certifi
import httpx
from pydantic import SecretStr

from prefect_assay import __version__
from prefect_assay.errors import AccessError, AssayError, InvalidRequest
from prefect_assay.service.client.http.address import (
    API_PREFIX,
    checked_base_url,
    checked_token,
    is_loopback_url,
)
from prefect_assay.service.client.http.exchange import ENCODINGS, Attempt, TooLarge
from prefect_assay.service.client.http.failures import no_answer, no_connection, too_large
from prefect_assay.service.client.http.request import JSON_TYPE, Answer, Request
from prefect_assay.service.models.service import NEUTRAL_PROVIDER, NEUTRAL_SERVICE, WireWords
from prefect_assay.service.network_variables import CERTIFICATES, check_certificates, check_http_proxies

_CONNECT_SECONDS: Final = 10.0
# Idle connections are dropped before servers usually drop them: an order that is sent into a connection which is
# just being closed has an unknown outcome.
_IDLE_SECONDS: Final = 2.0
_CONNECTIONS: Final = 20
_TOTAL_FACTOR: Final = 10.0
_DOWNLOAD_ADVICE: Final = "If the file is what it should be, raise max_package_gb of the AssayCredentials block, or max_download of the client"
# Raised before the first byte of the request is on its way.
_NOTHING_SENT: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
)
# How an exchange without an answer ends. httpx parses the address of a redirect even where it must not follow it:
# InvalidURL and UnicodeError are for an address that it cannot parse.
NO_ANSWER: Final = (httpx.HTTPError, httpx.InvalidURL, TimeoutError, UnicodeError)
# A field name in an expression comes first in its brackets; quoted values are skipped.
_FIELD = re.compile(rf'"(?:[^"\\]|\\.)*"|(?<=\()\s*{NEUTRAL_PROVIDER}_')
# In a sort it may also be bare, as in `-name` and `name:asc` (contract 4.1).
_COLUMN = re.compile(rf'"(?:[^"\\]|\\.)*"|((?:^|,)\s*[+-]?\s*){NEUTRAL_PROVIDER}_(?=\w*(?::\w+)?\s*(?:,|$))')
# Names of parameters: `name=value` and `geq(name)=value`.
_PARAMETER = re.compile(rf"^((?:[a-z]+\()?){NEUTRAL_PROVIDER}_")
_NEUTRAL_HEADER: Final = f"x-{NEUTRAL_SERVICE}-".lower()


_QUERY: Final[dict[str, Any]] = {"query": None, "fragment": None, "userinfo": b""}
_PATH: Final[dict[str, Any]] = {**_QUERY, "path": "/"}
_left_out: ContextVar[dict[str, Any] | None] = ContextVar("left_out", default=None)


class _WithoutSecrets(logging.Filter):
    """httpx logs the whole address of each request; a file's may be signed. Other requests are not changed."""

    def filter(self, record: logging.LogRecord) -> bool:
        hidden = _left_out.get()
        if hidden and isinstance(record.args, tuple):
            record.args = tuple(
                arg.copy_with(**hidden) if isinstance(arg, httpx.URL) else arg for arg in record.args
            )
        return True


logging.getLogger("httpx").addFilter(_WithoutSecrets())


@contextmanager
def unlogged_query(*, active: bool = True, path: bool = False) -> Iterator[None]:
    """Leave the query, which may be a permission, out of httpx's log for the requests sent in this context.

    With `path` the path as well: the address of a file may hold its permission there.
    """
    token = _left_out.set((_PATH if path else _QUERY) if active else None)
    try:
        yield
    finally:
        _left_out.reset(token)


class BearerAuth(httpx.Auth):
    """Adds the token (contract 5.1)."""

    def __init__(self, token: SecretStr) -> None:
        self._token = token

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Set the header, which httpx leaves out of its own reprs."""
        request.headers["Authorization"] = f"Bearer {self._token.get_secret_value()}"
        yield request


def certificates(*, trust_env: bool) -> ssl.SSLContext:
    """The certificates that a server's is checked with, read once per process as long as their file stays the same.

    Reading them takes longer than a request, and each look at an experiment makes a client.

    Raises:
        ConfigurationError: they cannot be read.
    """
    # as httpx chooses it
    name = next((name for name in CERTIFICATES if trust_env and os.environ.get(name)), None)
    place = certifi.where() if name is None else os.environ[name]
    if name == CERTIFICATES[-1]:  # httpx takes a folder that is not there
        check_certificates(name, place)
    try:
        file_status = Path(place).stat()
    except OSError:  # reading it says why; or there are several folders
        stamp: tuple[int, ...] = ()
    else:
        stamp = (file_status.st_mtime_ns, file_status.st_ino, file_status.st_size)
    try:
        return _certificates(trust_env, place, stamp)
    except OSError:
        if name:
            check_certificates(name, place)
        raise


@lru_cache(maxsize=4)
def _certificates(
    trust_env: bool,  # noqa: FBT001 - httpx has it so
    _place: str,
    _stamp: tuple[int, ...],
) -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=trust_env)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """Address, token, words and time limits of one client, all checked."""

    base_url: str
    auth: BearerAuth | None = field(repr=False)
    words: WireWords
    timeout: float
    secrets: tuple[str, ...] = field(repr=False)

    @classmethod
    def of(cls, base_url: str, token: SecretStr | str | None, words: WireWords, timeout: float) -> "Wire":
        """Raises ConfigurationError when the address or the token is not usable."""
        checked = None if token is None else checked_token(token)
        return cls(
            base_url=checked_base_url(base_url),
            auth=BearerAuth(checked) if checked else None,
            words=words,
            timeout=timeout,
            secrets=(checked.get_secret_value(),) if checked else (),
        )

    @property
    def total_seconds(self) -> float:
        """The time limit of a whole answer; `timeout` limits each step without progress."""
        return _TOTAL_FACTOR * self.timeout

    def options(self) -> dict[str, Any]:
        """What the httpx client is made with.

        Raises:
            ConfigurationError: a variable for proxies or certificates has no usable value.
        """
        # A proxy of the environment must not see what was meant for this machine.
        trust_env = not is_loopback_url(self.base_url)
        if trust_env:
            check_http_proxies()
        return {
            "verify": certificates(trust_env=trust_env),
            "timeout": httpx.Timeout(self.timeout, connect=min(self.timeout, _CONNECT_SECONDS)),
            "limits": httpx.Limits(
                max_connections=_CONNECTIONS,
                max_keepalive_connections=_CONNECTIONS,
                keepalive_expiry=_IDLE_SECONDS,
            ),
            "headers": {
                "Accept": JSON_TYPE,
                "Accept-Encoding": ", ".join(ENCODINGS),
                "User-Agent": f"prefect-assay/{__version__}",
            },
            "follow_redirects": False,
            "trust_env": trust_env,
        }

    def outgoing(self, client: httpx.Client, attempt: Attempt) -> httpx.Request:
        """The request of an attempt, in this deployment's words.

        Raises:
            InvalidRequest: something in it makes sense for a service on this machine only, and this one is not.
            AccessError: httpx cannot send to a file's address, or would send to another host than was checked.
        """
        if attempt.url is not None:
            return self._file(client, attempt.url, attempt.request)
        request = attempt.request
        if not is_loopback_url(self.base_url):
            InvalidRequest.check(request.unless_local)
        headers = {self._outer_name(name): value for name, value in request.headers.items()}
        content = request.content(self.words)
        if content is not None:
            headers["Content-Type"] = JSON_TYPE
        return client.build_request(
            request.method,
            f"{self.base_url}{API_PREFIX}{request.path}",
            params=[self._outer_parameter(name, value) for name, value in request.params] or None,
            headers=headers,
            content=content,
        )

    def _file(self, client: httpx.Client, url: str, request: Request) -> httpx.Request:
        """One hop of a download; the file as it is stored, not packed for transport."""
        try:
            outgoing = client.build_request(
                "GET", url, headers={"Accept": "*/*", "Accept-Encoding": "identity"}
            )
            # `host`, not `raw_host`, decodes an international name: httpx does so while it sends
            if outgoing.url.host and outgoing.url.raw_host.decode() == urlsplit(url).hostname:
                return outgoing
        except (httpx.InvalidURL, ValueError):
            pass
        raise AccessError(f"{request}: a download address that cannot be asked is not fetched")

    def answer(self, response: httpx.Response, content: bytes) -> Answer:
        """The answer in neutral words."""
        headers = {self._neutral_name(name.lower()): value for name, value in response.headers.items()}
        return Answer(status=response.status_code, headers=headers, content=content, words=self.words)

    def _outer_name(self, name: str) -> str:
        if not name.lower().startswith(_NEUTRAL_HEADER):
            return name
        return self.words.header(name[len(_NEUTRAL_HEADER) :])

    def _outer_parameter(self, name: str, value: str) -> tuple[str, str]:
        prefix = f"{self.words.provider}_"
        if name == "sort":
            value = _COLUMN.sub(lambda match: match[0] if match[1] is None else match[1] + prefix, value)
        if name in {"filter", "sort"}:
            return name, _FIELD.sub(lambda match: match[0] if match[0].startswith('"') else prefix, value)
        return _PARAMETER.sub(lambda match: match[1] + prefix, name), value

    def _neutral_name(self, name: str) -> str:
        prefix = self.words.header("").lower()
        return _NEUTRAL_HEADER + name[len(prefix) :] if name.startswith(prefix) else name


def broken_off(request: Request, error: Exception, status: int) -> AssayError:
    """The error for a file that was not received whole."""
    return (
        too_large(request, error, status, _DOWNLOAD_ADVICE)
        if isinstance(error, TooLarge)
        else lost(request, error)
    )


def lost(request: Request, error: Exception) -> AssayError:
    """The error for an exchange that ended without an answer."""
    kind = type(error).__name__
    if isinstance(error, httpx.InvalidURL | UnicodeError) or isinstance(error.__context__, httpx.InvalidURL):
        cause = "its address, or the one it redirects to, is malformed and not fetched"
        return AccessError(f"{request}: {cause}") if request.lost is None else no_answer(request, cause)
    if isinstance(error, httpx.LocalProtocolError):  # the request itself; its text would quote a header
        return no_connection(request, "the request cannot be sent as it is")
    if isinstance(error, _NOTHING_SENT):
        return no_connection(request, f"{kind}: {error}" if str(error) else kind)
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        return no_answer(request, f"no answer within the time limit ({kind})")
    return no_answer(request, f"the connection broke before the whole answer was there ({kind})")
