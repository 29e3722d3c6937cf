"""The OAuth sign-in of tool clients (contract 5.7): addresses, clients and grants; of keys and codes only digests.

`oauth_provider` is imported with the first request, because the OAuth library takes longer to import than the lab.
"""

import json
import secrets
import time
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from assay_lab.kernel.refusals import Refusal
from assay_lab.kernel.store import Db, Row
from assay_lab.requests.core import Lab
from assay_lab.tokens import sessions
from assay_lab.tokens.sessions import Session, digest_secret

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
# Real seconds: for the person to decide, and for the client to fetch its token.
DECISION_S: Final = 600
CODE_S: Final = 60
_TOKEN_DAYS: Final = 365


def is_offered(base_url: str) -> bool:
    """Whether sign-in is possible: codes and tokens must not cross a network in plain text (RFC 8414)."""
    parts = urlsplit(base_url)
    return parts.scheme == "https" or parts.hostname in _LOOPBACK


class SignInEndpoint:
    """ASGI application for all of PATHS."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._app: Starlette | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI entry point."""
        app: ASGIApp
        if not is_offered(self._lab.settings.base_url):
            app = JSONResponse({"error": "sign-in needs https, or a lab on loopback"}, 404)
        else:
            try:
                app = await run_in_threadpool(self._made)
            except ImportError:
                app = JSONResponse({"error": "sign-in needs mcp: pip install mcp"}, 501)
        await app(scope, receive, send)

    def _made(self) -> Starlette:
        if self._app is None:
            from assay_lab.account import oauth_provider  # noqa: PLC0415 - an extra, and slow

            self._app = oauth_provider.create(self._lab)
        return self._app


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """A grant that waits for a decision; `client` is the client's own name, `state` is returned to it unchanged."""

    id: str
    client: str
    redirect_uri: str
    state: str | None


def request_access(db: Db, client_id: str, request: str) -> str:
    """Keep a request (JSON text with `redirect_uri` and `state`) until a person decides; the key of the page for it."""
    db.run("DELETE FROM oauth_grants WHERE expires_at < ? AND token_id IS NULL", time.time())
    key = secrets.token_urlsafe(32)
    row = {"id": digest_secret(key), "client_id": client_id, "request": request}
    db.insert("oauth_grants", row | {"expires_at": time.time() + DECISION_S})
    return key


def access_request(db: Db, key: str) -> AccessRequest:
    """The request behind a page; 404 when it is unknown, too old or decided."""
    row = db.one(
        "SELECT g.*, c.information FROM oauth_grants g JOIN oauth_clients c ON c.id = g.client_id"
        " WHERE g.id = ? AND g.expires_at > ? AND g.code IS NULL",
        digest_secret(key),
        time.time(),
    )
    if row is None:
        raise Refusal(404, "no such page; the request may have been answered, or is too old")
    request = json.loads(row["request"])
    name = json.loads(row["information"]).get("client_name") or "a tool client without a name"
    return AccessRequest(row["id"], str(name), str(request["redirect_uri"]), request.get("state"))


def allow_grant(db: Db, grant: AccessRequest, session: Session) -> str:
    """Record the consent; the address for the browser, with the code."""
    code = secrets.token_urlsafe(32)
    expires_at = time.time() + CODE_S
    db.update(
        "oauth_grants", grant.id, code=digest_secret(code), session_id=session.id, expires_at=expires_at
    )
    return _make_answer_url(grant, code=code)


def deny_grant(db: Db, grant: AccessRequest) -> str:
    """Forget the request; the address for the browser."""
    db.run("DELETE FROM oauth_grants WHERE id = ?", grant.id)
    return _make_answer_url(grant, error="access_denied")


def _make_answer_url(grant: AccessRequest, **values: str) -> str:
    parts = urlsplit(grant.redirect_uri)
    state = {} if grant.state is None else {"state": grant.state}
    query = urlencode([*parse_qsl(parts.query, keep_blank_values=True), *(values | state).items()])
    return urlunsplit(parts._replace(query=query))


def of_code(lab: Lab, db: Db, client_id: str, code: str) -> Row | None:
    """The grant of a code. A code that comes a second time was stolen, so its token dies (RFC 6749, 4.1.2)."""
    row = db.one(
        "SELECT * FROM oauth_grants WHERE code = ? AND client_id = ?", digest_secret(code), client_id
    )
    if row is not None and row["used"]:
        if row["token_id"]:
            revoke_sign_in(lab, db, row["token_id"])
        return None
    return row


def redeem_grant(lab: Lab, db: Db, grant_id: str, client_name: str) -> tuple[str, int] | None:
    """The token of a grant and the real seconds left of its session, which ends it; None after the session."""
    row = db.one("SELECT * FROM oauth_grants WHERE id = ? AND NOT used", grant_id)
    session = sessions.by_id(db, row["session_id"]) if row else None
    if session is None:
        return None
    minted = lab.tokens.mint(
        db,
        org_id=session.user["org_id"],
        role=session.user["role"],
        name=client_name,
        days=_TOKEN_DAYS,
        user_id=session.user["id"],
        kind="oauth",
        session=session.id,
    )
    db.update("oauth_grants", grant_id, used=1, token_id=minted.id)
    return minted.token, int(session.expires_at - time.time())


def sign_out(lab: Lab, db: Db, session: Session) -> None:
    """End a session, and with it every token that a sign-in made from it (contract 5.7)."""
    for row in db.all("SELECT token_id FROM oauth_grants WHERE session_id = ?", session.id):
        if row["token_id"]:
            revoke_sign_in(lab, db, row["token_id"])
    db.run("DELETE FROM oauth_grants WHERE session_id = ?", session.id)
    sessions.end_session(db, session.id)


def revoke_sign_in(lab: Lab, db: Db, token_id: str) -> None:
    """Revoke a sign-in's token with its family."""
    row = db.one("SELECT org_id FROM tokens WHERE id = ?", token_id)
    if row is not None:
        lab.tokens.revoke_family(db, token_id, lab.clock.now(row["org_id"]))
