"""Refuses what web browsers send from other pages than a server's own, or under other names.

A page of any other origin can send requests to this machine's ports, and by DNS rebinding under a name of its own.
Programs send no `Origin`. It must not know the applications that it guards: Prefect's server, the lab, the receiver.
"""

import re
from collections.abc import Iterable
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final, NamedTuple

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from prefect_assay.errors import InputError

OPTION: Final = "--allow-host"
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_ALL_INTERFACES: Final = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - they name no host
_NAME: Final = r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)"
_HOST: Final = re.compile(rf"{_NAME}(?::([0-9]{{0,5}}))?")
_ORIGIN: Final = re.compile(rf"(https?)://{_NAME}(?::([0-9]{{1,5}}))?", re.IGNORECASE)
_PORTS: Final = {"http": 80, "https": 443}
_FOREIGN_SITE: Final = frozenset({"same-site", "cross-site"})  # a site is a host without its port


class _Host(NamedTuple):
    name: str
    port: int | None  # None for the scheme's


def own_names(listening: str, allowed: Iterable[str] = ()) -> frozenset[str]:
    """The host names of a server: the loopback's, the address that it listens on, and those that the user allows.

    Raises:
        InputError: one of `allowed` is not a host name.
    """
    named = () if listening in _ALL_INTERFACES else (listening,)
    for name in allowed:
        if not re.fullmatch(_NAME, name) and not _is_address(name):
            raise InputError(
                f"{OPTION} {name!r} is not a host name; give it alone, without scheme and port, such as prefect.example.org"
            )
    return frozenset(_normal(name) for name in (*_LOOPBACK, *named, *allowed))


class OwnPagesOnly:
    """ASGI middleware: refuses what another origin's page sends, whatever path, method and protocol.

    The name in `Host` has to be an own one (421), and `Origin`, where there is one, an own name with the port of `Host`
    (403). Without `Origin` a browser says by `Sec-Fetch-Site` that another page loads something: only links that a
    person follows pass.
    """

    def __init__(self, app: ASGIApp, names: frozenset[str], *, any_address: bool = False) -> None:
        """Guard an application.

        Args:
            app: the application.
            names: of `own_names`.
            any_address: take every IP address in `Host`, as a probe sends; only names can be rebound.
        """
        self._app = app
        self._names = names
        self._any_address = any_address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI entry point."""
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(Headers(scope=scope), scope.get("method", "GET"))
        if refusal is None:
            await self._app(scope, receive, send if scope["type"] == "websocket" else _not_in_frames(send))
        elif scope["type"] == "http":
            await refusal(scope, receive, send)
        else:  # before it is accepted, which servers answer with 403
            await send({"type": "websocket.close", "code": 1008})

    def _refusal(self, headers: Headers, method: str) -> JSONResponse | None:
        host = _host(headers.getlist("host"))
        if host is None or not (host.name in self._names or (self._any_address and _is_address(host.name))):
            shown = f"the host {host.name}" if host else "this Host header"
            return _refused(
                HTTPStatus.MISDIRECTED_REQUEST,
                f"this server does not answer for {shown}; if it is a name of this server, start it with {OPTION} NAME",
            )
        if self._is_foreign_page(host, headers, method):
            return _refused(
                HTTPStatus.FORBIDDEN,
                f"this server answers no page of another origin; open its own address, or start it with {OPTION} NAME and "
                "let a proxy in front pass Host on unchanged",
            )
        return None

    def _is_foreign_page(self, host: _Host, headers: Headers, method: str) -> bool:
        """Whether a browser sends this from another origin's page."""
        foreign_site = headers.get("sec-fetch-site") in _FOREIGN_SITE
        origins = headers.getlist("origin")
        if not origins:
            followed = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == (
                "navigate",
                "document",
            )
            return foreign_site and not (followed and method in {"GET", "HEAD"})
        match = _ORIGIN.fullmatch(origins[0]) if len(origins) == 1 else None
        if match is None:  # "null" too
            return True
        scheme, name, port = match[1].lower(), _normal(match[2]), match[3]
        same_port = int(port or _PORTS[scheme]) == (host.port or _PORTS[scheme])
        if (
            name == host.name
        ):  # with the same port, and yet another site to the browser: the scheme is another
            return foreign_site or not same_port
        return not same_port or name not in self._names


def _host(values: list[str]) -> _Host | None:
    """The one `Host` header; None without a valid one, or with several."""
    match = _HOST.fullmatch(values[0]) if len(values) == 1 else None
    return _Host(_normal(match[1]), int(match[2]) if match[2] else None) if match else None


def _normal(name: str) -> str:
    """A name or address as it is compared: lower case, no final dot, no brackets, one form of an address."""
    bare = name.lower().removesuffix(".").strip("[]")
    return str(ip_address(bare)) if _is_address(bare) else bare


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _refused(status: HTTPStatus, reason: str) -> JSONResponse:
    return JSONResponse({"error": reason}, status)


def _not_in_frames(send: Send) -> Send:
    """Keep other pages from showing this one in a frame, where a person clicks on what he does not see.

    A policy of the application's own stays.
    """

    async def send_with_policy(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).setdefault("content-security-policy", "frame-ancestors 'self'")
        await send(message)

    return send_with_policy
