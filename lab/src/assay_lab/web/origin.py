"""Refuses what web browsers send from pages of other origins, or under names that are not the lab's.

A page of any origin can send requests to this machine's ports, and by DNS rebinding under a name of its own. Programs
send no `Origin`.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assay_lab.errors import ConfigurationError
from assay_lab.kernel.refusals import make_request_id
from assay_lab.words import SIMULATED_HEADER, SIMULATED_VALUE

_NAME: Final = r"\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+"
_HOST: Final = re.compile(rf"(?P<name>{_NAME})(?::(?P<port>[0-9]{{0,5}}))?")
_ORIGIN: Final = re.compile(
    rf"(?P<scheme>https?)://(?P<name>{_NAME})(?::(?P<port>[0-9]{{1,5}}))?", re.IGNORECASE
)
_PORTS: Final = {"http": 80, "https": 443}


def lab_names(listening: str, allowed: Iterable[str] = ()) -> frozenset[str]:
    """The host names that the lab answers for: the loopback's, that of its address, and those that the user allows.

    Raises:
        ConfigurationError: one of `allowed` is not a host name.
    """
    names = ["localhost", "127.0.0.1", "::1", *allowed]
    if listening not in {"", "0.0.0.0", "::"}:  # noqa: S104 - these name no host
        names.append(listening)
    for name in allowed:
        if not (re.fullmatch(_NAME, name) or _is_address(name)):
            raise ConfigurationError(f"--allow-host {name!r}: give the name alone, such as lab.example.org")
    return frozenset(map(_normalize_name, names))


class OwnPagesOnly:
    """ASGI middleware: answers programs and the lab's own pages.

    The name in `Host` has to be the lab's (421). `Origin`, where there is one, has to be one of its names with the port
    of `Host` (403). Without `Origin`, a browser says by `Sec-Fetch-Site` that another page loads something, and only
    links that a person follows pass.
    """

    def __init__(self, app: ASGIApp, names: frozenset[str]) -> None:
        """Guard an application; `names` are those of `lab_names`."""
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI entry point."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refuse(Headers(scope=scope), scope["method"])
        await (refusal or self._app)(scope, receive, _mark_answer(send))

    def _refuse(self, headers: Headers, method: str) -> JSONResponse | None:
        hosts = headers.getlist("host")
        host = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
        if host is None or _normalize_name(host["name"]) not in self._names:
            return _make_refusal(
                HTTPStatus.MISDIRECTED_REQUEST,
                "the lab does not answer for this host; if it is one of the lab's names, start it with --allow-host NAME",
            )
        if not self._is_own_page(_normalize_name(host["name"]), host["port"], headers, method):
            return _make_refusal(
                HTTPStatus.FORBIDDEN, "the lab answers no page of another origin; open the lab's own address"
            )
        return None

    def _is_own_page(self, host: str, host_port: str | None, headers: Headers, method: str) -> bool:
        is_own_site = headers.get("sec-fetch-site") not in {"same-site", "cross-site"}
        origins = headers.getlist("origin")
        if not origins:
            return is_own_site or (
                method in {"GET", "HEAD"}
                and headers.get("sec-fetch-mode") == "navigate"
                and headers.get("sec-fetch-dest") == "document"
            )
        origin = _ORIGIN.fullmatch(origins[0]) if len(origins) == 1 else None
        if origin is None:  # also "null"
            return False
        default = _PORTS[origin["scheme"].lower()]
        if int(origin["port"] or default) != int(host_port or default):
            return False
        name = _normalize_name(origin["name"])
        # The same name and port, and yet another site to the browser: the scheme is another.
        return is_own_site if name == host else name in self._names


@lru_cache
def _normalize_name(name: str) -> str:
    """A name as it is compared: lower case, without brackets and final dot, addresses in one form."""
    bare = name.lower().removesuffix(".").strip("[]")
    return str(ip_address(bare)) if _is_address(bare) else bare


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _make_refusal(status: HTTPStatus, reason: str) -> JSONResponse:
    request_id = make_request_id()
    return JSONResponse({"error": reason, "request_id": request_id}, status, {"x-request-id": request_id})


def _mark_answer(send: Send) -> Send:
    """Say that this service is simulated, and keep pages of others from showing the lab's in a frame.

    In a frame, a person would click unawares.
    """

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers[SIMULATED_HEADER] = SIMULATED_VALUE
            headers.setdefault("content-security-policy", "frame-ancestors 'self'")
        await send(message)

    return send_with_headers
