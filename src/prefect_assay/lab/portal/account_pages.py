"""The portal's pages for people who sign in: the experiments, the tokens, and tool clients that ask for access.

Sign-in is a link that the lab prints; there are no passwords. What a page shows is made in `pages_portal`.
"""

import re
from typing import Final
from urllib.parse import urlsplit

from fastapi import APIRouter, Request, Response

from prefect_assay.lab.account import oauth_grants
from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.kernel.store import Row
from prefect_assay.lab.portal import account_html as pages_portal
from prefect_assay.lab.portal import tokens as portal_tokens
from prefect_assay.lab.portal.base import Core, Form, Signed, Visitor, go, page, sign_in, sign_out
from prefect_assay.lab.requests.core import Lab
from prefect_assay.lab.tokens import sessions
from prefect_assay.lab.tokens.sessions import Session

PAGE_ROWS: Final = 50
_HOME: Final = "/portal/"
_OWN_PATH: Final = re.compile(r"/portal/(?:[A-Za-z0-9_.-]+/)*")

router = APIRouter()


@router.get("/sign-in/{key}/")
def greeting(core: Core, key: str) -> Response:
    """Behind a sign-in link."""
    return page(pages_portal.greeting_page(_user(core.lab, key)))


@router.post("/sign-in/{key}/")
def sign_in_by_link(core: Core, key: str) -> Response:
    """Begin a session."""
    return sign_in(core, go(_HOME), _begin(core.lab, key))


@router.post("/sign-in/")
def sign_in_by_form(core: Core, fields: Form) -> Response:
    """Begin a session with a pasted link, and go on to where the visitor wanted to be."""
    key = urlsplit(fields.get("link", "").strip()).path.rstrip("/").rpartition("/")[2]
    follow = fields.get("follow", "")
    target = follow if _OWN_PATH.fullmatch(follow) else _HOME
    return sign_in(core, go(target), _begin(core.lab, key))


def _user(lab: Lab, key: str) -> Row:
    with lab.store.transaction() as db:
        user = sessions.user_of(lab.settings, db, key)
    if user is None:
        raise Refusal(404, "no such page; sign-in links change when the lab starts again")
    return user


def _begin(lab: Lab, key: str) -> str:
    user = _user(lab, key)
    with lab.store.transaction() as db:
        return sessions.begin(lab.settings, db, user)


@router.post("/sign-out")
def sign_out_now(core: Core, session: Signed) -> Response:
    """End the session and every token that came from it (contract 5.7)."""
    with core.lab.store.transaction() as db:
        oauth_grants.sign_out(core.lab, db, session)
    return sign_out(go(_HOME))


@router.get("/")
def experiments(core: Core, visitor: Visitor, offset: str = "0") -> Response:
    """The organisation's experiments; a sign-in form for strangers."""
    if visitor is None:
        return page(pages_portal.sign_in_page(follow=_HOME))
    skipped = int(offset) if re.fullmatch(r"[0-9]{1,9}", offset) else 0
    return page(_experiments(core.lab, visitor, skipped))


def _experiments(lab: Lab, session: Session, offset: int) -> str:
    org_id = session.user["org_id"]
    with lab.store.transaction() as db:
        counted = db.one("SELECT count(*) AS number FROM experiments WHERE org_id = ?", org_id)
        rows = db.all(
            "SELECT e.code, e.name, e.experiment_type, e.status, e.results_status, e.created_at, e.portal_key,"
            " (SELECT q.portal_key FROM quotes q WHERE q.experiment_id = e.id AND q.status = 'pending') AS quote_key,"
            " (SELECT i.portal_key FROM invoices i WHERE i.experiment_id = e.id AND i.status IN ('draft', 'open'))"
            " AS invoice_key FROM experiments e WHERE e.org_id = ? ORDER BY e.created_at DESC, e.seq DESC"
            " LIMIT ? OFFSET ?",
            org_id,
            PAGE_ROWS,
            offset,
        )
    total = counted["number"] if counted else 0
    return pages_portal.experiments_page(session.user, session.csrf, rows, total=total, offset=offset)


@router.get("/organization/settings/tokens/")
def tokens(core: Core, visitor: Visitor, request: Request) -> Response:
    """Organization, Settings, Tokens (contract 5.4)."""
    if visitor is None:
        return page(pages_portal.sign_in_page(follow=pages_portal.TOKENS))
    rows = portal_tokens.listing(core.lab, visitor)
    fresh = portal_tokens.fresh(request.app).pop(visitor.id, None)
    return page(pages_portal.tokens_page(visitor.user, visitor.csrf, rows, fresh))


@router.post("/organization/settings/tokens/create")
def create_token(core: Core, session: Signed, fields: Form, request: Request) -> Response:
    """Make a token; the next look at the list shows it, once."""
    made = portal_tokens.create(core.lab, session, fields)
    portal_tokens.fresh(request.app)[session.id] = made
    return go(pages_portal.TOKENS)


@router.post("/organization/settings/tokens/{token_id}/revoke")
def revoke_token(core: Core, session: Signed, token_id: str) -> Response:
    """Revoke a token and all that were made of it, at once (contract 5.4)."""
    portal_tokens.revoke(core.lab, session, token_id)
    return go(pages_portal.TOKENS)


@router.get("/connect/{key}/")
def connect(core: Core, visitor: Visitor, key: str) -> Response:
    """A tool client asks for access (contract 5.7)."""
    if visitor is None:
        return page(pages_portal.sign_in_page(follow=f"/portal/connect/{key}/"))
    with core.lab.store.transaction() as db:
        grant = oauth_grants.asked(db, key)
    text = pages_portal.connect_page(
        visitor.user, visitor.csrf, client=grant.client, redirect_uri=grant.redirect_uri, ends=visitor.ends
    )
    return page(text, grant.redirect_uri)


@router.post("/connect/{key}/")
def decide(core: Core, session: Signed, fields: Form, key: str) -> Response:
    """The person's answer goes back to the client."""
    with core.lab.store.transaction() as db:
        grant = oauth_grants.asked(db, key)
        if fields.get("decision") == "allow":
            return go(oauth_grants.allow(db, grant, session))
        return go(oauth_grants.deny(db, grant))
