"""Pages of signed-in people: tokens (contract 5.4), and access for tool clients (contract 5.7)."""

import re
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Request, Response

from assay_lab.account import oauth
from assay_lab.kernel import times
from assay_lab.kernel.refusals import Refusal
from assay_lab.kernel.store import Row
from assay_lab.portal.pages import (
    Form,
    Signed,
    TheLab,
    Visitor,
    go,
    page,
    render,
    sign_in,
    sign_in_page,
    sign_out,
    signed_in_page,
)
from assay_lab.requests.core import Lab
from assay_lab.tokens import sessions
from assay_lab.tokens.registry import EXPIRY_DAYS
from assay_lab.tokens.sessions import Session

TOKENS: Final = "/portal/organization/settings/tokens/"
_NAME_MAX: Final = 200
_SHOWN_MAX: Final = 500
_OWN_PATH: Final = re.compile(r"/portal/(?:[A-Za-z0-9_.-]+/)*")

router = APIRouter()


@router.get("/sign-in/{key}/")
def show_greeting(lab: TheLab, key: str) -> Response:
    """Behind a sign-in link. Only the button begins a session: a link may be loaded by anything."""
    return page(render("greeting.html", title="Sign in", user=_find_user(lab, key)))


@router.post("/sign-in/{key}/")
def sign_in_by_link(lab: TheLab, key: str) -> Response:
    """Begin a session."""
    return sign_in(lab, go(TOKENS), _begin_session(lab, key))


@router.post("/sign-in/")
def sign_in_by_form(lab: TheLab, fields: Form) -> Response:
    """Begin a session with a pasted link, and return to the page that the visitor opened first."""
    key = urlsplit(fields.get("link", "").strip()).path.rstrip("/").rpartition("/")[2]
    follow = fields.get("follow", "")
    return sign_in(lab, go(follow if _OWN_PATH.fullmatch(follow) else TOKENS), _begin_session(lab, key))


def _find_user(lab: Lab, key: str) -> Row:
    with lab.store.transaction() as db:
        user = sessions.user_of(lab.settings, db, key)
    if user is None:
        raise Refusal(404, "no such page; sign-in links change when the lab starts again")
    return user


def _begin_session(lab: Lab, key: str) -> str:
    user = _find_user(lab, key)
    with lab.store.transaction() as db:
        return sessions.begin_session(db, user)


@router.post("/sign-out")
def end_session(lab: TheLab, session: Signed) -> Response:
    """End the session and every token that came from it (contract 5.7)."""
    with lab.store.transaction() as db:
        oauth.sign_out(lab, db, session)
    return sign_out(go(TOKENS))


@router.get("/")
def show_start(visitor: Visitor) -> Response:
    """A sign-in form for strangers; people who are signed in see their tokens."""
    return sign_in_page(follow=TOKENS) if visitor is None else go(TOKENS)


@router.get("/connect/{key}/")
def show_connect(lab: TheLab, visitor: Visitor, key: str) -> Response:
    """A tool client requests access in the signed-in person's name (contract 5.7); its name is its own claim."""
    if visitor is None:
        return sign_in_page(follow=f"/portal/connect/{key}/")
    with lab.store.transaction() as db:
        grant = oauth.access_request(db, key)
    address = urlsplit(grant.redirect_uri)
    return signed_in_page(
        "connect.html",
        visitor,
        title="Connect",
        form_targets=[grant.redirect_uri],
        client=grant.client,
        receiver=address.netloc or address.scheme,
        ends=visitor.ends,
    )


@router.post("/connect/{key}/")
def record_decision(lab: TheLab, session: Signed, fields: Form, key: str) -> Response:
    """Send the person's answer to the client."""
    with lab.store.transaction() as db:
        grant = oauth.access_request(db, key)
        if fields.get("decision") == "allow":
            return go(oauth.allow_grant(db, grant, session))
        return go(oauth.deny_grant(db, grant))


def _list_fresh(request: Request) -> dict[str, dict[str, Any]]:
    """Tokens that were just created and not shown yet, by session; only in memory."""
    state = request.app.state
    if not hasattr(state, "fresh_tokens"):
        state.fresh_tokens = {}
    fresh_tokens: dict[str, dict[str, Any]] = state.fresh_tokens
    return fresh_tokens


Fresh = Annotated[dict[str, dict[str, Any]], Depends(_list_fresh)]


@router.get("/organization/settings/tokens/")
def show_tokens(lab: TheLab, visitor: Visitor, fresh: Fresh) -> Response:
    """The organization's root tokens, newest first; the value of a new one once."""
    if visitor is None:
        return sign_in_page(follow=TOKENS)
    return signed_in_page(
        "tokens.html",
        visitor,
        title="Tokens",
        here=TOKENS,
        rows=_list_tokens(lab, visitor),
        fresh=fresh.pop(visitor.id, None),
        may_change=visitor.user["role"] != "viewer",
        expiries=[(days, "1 year" if days == 365 else f"{days} days") for days in EXPIRY_DAYS],  # noqa: PLR2004
        name_max=_NAME_MAX,
    )


def _list_tokens(lab: Lab, session: Session) -> list[Row]:
    org_id = session.user["org_id"]
    now = times.stamp(lab.clock.now(org_id))
    with lab.store.transaction() as db:
        rows = db.all(
            "SELECT t.id, t.name, t.role, t.kind, t.created_at, t.expires_at, t.revoked_at,"
            " (SELECT count(*) FROM tokens c WHERE c.root_token_id = t.id) AS children"
            " FROM tokens t WHERE t.org_id = ? AND t.root_token_id IS NULL"
            " ORDER BY t.revoked_at IS NOT NULL, t.created_at DESC, t.seq DESC LIMIT ?",
            org_id,
            _SHOWN_MAX,
        )
    return [row | {"state": _describe_state(row, now)} for row in rows]


def _describe_state(row: Row, now: str) -> str:
    if row["revoked_at"]:
        return "revoked"
    return "active" if row["expires_at"] > now else "expired"


@router.post("/organization/settings/tokens/create")
def create_token(lab: TheLab, session: Signed, fields: Form, fresh: Fresh) -> Response:
    """Create a token; 403 for viewers, 400 for anything that the form does not offer."""
    _check_role(session)
    name, role, days = fields.get("name", "").strip(), fields.get("role"), fields.get("days", "")
    if not name or len(name) > _NAME_MAX:
        raise Refusal(400, f"name: 1 to {_NAME_MAX} characters")
    if role not in ("member", "viewer"):
        raise Refusal(400, "role: member or viewer")
    if days not in {str(choice) for choice in EXPIRY_DAYS}:
        raise Refusal(400, f"days: one of {', '.join(str(choice) for choice in EXPIRY_DAYS)}")
    with lab.store.transaction() as db:
        minted = lab.tokens.mint(
            db,
            org_id=session.user["org_id"],
            role="member" if role == "member" else "viewer",
            name=name,
            days=int(days),
            user_id=session.user["id"],
            kind="portal",
        )
    fresh[session.id] = {"name": name, "token": minted.token}
    return go(TOKENS)


@router.post("/organization/settings/tokens/{token_id}/revoke")
def revoke_token(lab: TheLab, session: Signed, token_id: str) -> Response:
    """Revoke a token and its family at once; 403 for viewers, 404 for another organization's (contract 5.4)."""
    _check_role(session)
    org_id = session.user["org_id"]
    with lab.store.transaction() as db:
        if db.one("SELECT 1 FROM tokens WHERE id = ? AND org_id = ?", token_id, org_id) is None:
            raise Refusal(404, "no such token")
        lab.tokens.revoke_family(db, token_id, lab.clock.now(org_id))
    return go(TOKENS)


def _check_role(session: Session) -> None:
    if session.user["role"] == "viewer":
        raise Refusal(403, "viewers may look at tokens, and neither create nor revoke them")
