"""The portal's pages for people who sign in: the experiments, and tool clients that request access.

Sign-in is a link that the lab prints; there are no passwords.
"""

import re
from typing import Final
from urllib.parse import urlsplit

from fastapi import APIRouter, Response

from prefect_assay.lab.account import oauth
from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.kernel.store import Row
from prefect_assay.lab.portal.dependencies import (
    Form,
    Signed,
    TheLab,
    Visitor,
    go,
    page,
    sign_in,
    sign_in_page,
    sign_out,
    signed_in_page,
)
from prefect_assay.lab.portal.rendering import render
from prefect_assay.lab.requests.core import Lab
from prefect_assay.lab.tokens import sessions

PAGE_ROWS: Final = 50
_HOME: Final = "/portal/"
_OWN_PATH: Final = re.compile(r"/portal/(?:[A-Za-z0-9_.-]+/)*")

router = APIRouter()


@router.get("/sign-in/{key}/")
def greeting(lab: TheLab, key: str) -> Response:
    """Behind a sign-in link. Only the button begins a session: a link may be loaded by anything."""
    return page(render("greeting.html", title="Sign in", user=_user(lab, key)))


@router.post("/sign-in/{key}/")
def sign_in_by_link(lab: TheLab, key: str) -> Response:
    """Begin a session."""
    return sign_in(lab, go(_HOME), _begin(lab, key))


@router.post("/sign-in/")
def sign_in_by_form(lab: TheLab, fields: Form) -> Response:
    """Begin a session with a pasted link, and return to the page that the visitor opened first."""
    key = urlsplit(fields.get("link", "").strip()).path.rstrip("/").rpartition("/")[2]
    follow = fields.get("follow", "")
    return sign_in(lab, go(follow if _OWN_PATH.fullmatch(follow) else _HOME), _begin(lab, key))


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
def end_session(lab: TheLab, session: Signed) -> Response:
    """End the session and every token that came from it (contract 5.7)."""
    with lab.store.transaction() as db:
        oauth.sign_out(lab, db, session)
    return sign_out(go(_HOME))


@router.get("/")
def experiments(lab: TheLab, visitor: Visitor, offset: str = "0") -> Response:
    """The organisation's experiments, newest first; a sign-in form for strangers."""
    if visitor is None:
        return sign_in_page(follow=_HOME)
    skipped = int(offset) if re.fullmatch(r"[0-9]{1,9}", offset) else 0
    org_id = visitor.user["org_id"]
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
            skipped,
        )
    return signed_in_page(
        "experiments.html",
        visitor,
        title="Experiments",
        here=_HOME,
        rows=rows,
        offset=skipped,
        total=counted["number"] if counted else 0,
    )


@router.get("/connect/{key}/")
def connect(lab: TheLab, visitor: Visitor, key: str) -> Response:
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
def decide(lab: TheLab, session: Signed, fields: Form, key: str) -> Response:
    """Send the person's answer to the client."""
    with lab.store.transaction() as db:
        grant = oauth.access_request(db, key)
        if fields.get("decision") == "allow":
            return go(oauth.allow(db, grant, session))
        return go(oauth.deny(db, grant))
