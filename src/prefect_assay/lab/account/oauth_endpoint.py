"""The addresses of the OAuth sign-in; the application behind them is made when the first client asks.

As with `tools_endpoint`, because the library takes longer to import than the lab to start. Knows nothing of OAuth.
"""

from typing import Final
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from prefect_assay.lab.requests.core import Lab

METADATA: Final = "/.well-known/oauth-protected-resource"
PATHS: Final = (
    "/authorize",
    "/token",
    "/register",
    "/revoke",
    "/.well-known/oauth-authorization-server",
    METADATA,
    f"{METADATA}/mcp",
)
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost"})


def offered(base_url: str) -> bool:
    """Whether people can sign in: codes and tokens must not cross a network in plain text (RFC 8414)."""
    parts = urlsplit(base_url)
    return parts.scheme == "https" or parts.hostname in _LOOPBACK


class SignInEndpoint:
    """ASGI application for all of PATHS."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._app: Starlette | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI entry point."""
        if not offered(self._lab.settings.base_url):
            await _say(404, "sign-in needs https, or a lab on loopback")(scope, receive, send)
            return
        try:
            app = await run_in_threadpool(self._made)
        except ImportError:
            await _say(501, "sign-in needs mcp: pip install 'prefect-assay[lab]'")(scope, receive, send)
            return
        await app(scope, receive, send)

    def _made(self) -> Starlette:
        if self._app is None:
            from prefect_assay.lab.account import oauth  # noqa: PLC0415 - an extra, and slow

            self._app = oauth.create(self._lab)
        return self._app


def _say(status: int, message: str) -> JSONResponse:
    return JSONResponse({"error": message}, status)
