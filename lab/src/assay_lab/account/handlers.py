"""Handlers of identity, tokens, health, feedback and partners (contract 4.6; service shapes, Tokens and identity).

Of the partners' request the contract shows only `org.type` and `expires_at`; the other fields are this lab's choice.
"""

import re
import secrets
import sqlite3
import unicodedata
import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import Field

from assay_lab.kernel import times
from assay_lab.kernel.refusals import Body, Refusal, database_unavailable
from assay_lab.kernel.store import Db, Row, decode_row
from assay_lab.requests import lists, validation
from assay_lab.requests.core import Answer, Call, Lab
from assay_lab.requests.lists import Column, Listing
from assay_lab.requests.schemas import SubmitFeedback
from assay_lab.tokens.permissions import AttenuateToken, Label, Moment
from assay_lab.tokens.registry import DEFAULT_DAYS, EXPIRY_DAYS
from assay_lab.vocabulary import MACHINE_RAILS, PaymentMethod

DEFAULT_POLICY: Final = (
    PaymentMethod.ASYNC_INVOICE,
    *(method for method in PaymentMethod if method in MACHINE_RAILS),
)
_SLUG_MAX: Final = 20
_DAYS_MAX: Final = max(EXPIRY_DAYS)
_EMAIL: Final = r"^[^@\s\"<>\x00-\x1f]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?$"
# Revoked tokens are left out: the published row has no field that distinguishes them.
TOKENS: Final = Listing(
    source="tokens",
    columns={
        "id": Column("tokens.id", "uuid"),
        "name": Column("name"),
        "kind": Column("kind"),
        "parent_token_id": Column("parent_token_id", "uuid"),
        "root_token_id": Column("root_token_id", "uuid"),
        "created_at": Column("created_at", "timestamp"),
        "expires_at": Column("expires_at", "timestamp"),
    },
    search=("name",),
)
_ALIVE: Final = lists.Sql("tokens.revoked_at IS NULL")


def get_whoami(call: Call) -> Answer:
    """GET /whoami."""
    who = call.who
    organization = {"id": who.org_id, "name": who.org_name, "role": who.role, "active": True}
    return Answer(
        {
            "user_id": who.user_id,
            "organizations": [organization],
            "active_organization_id": who.org_id,
            "permissions": who.permissions,
            "token_expires_at": who.expires_at,
        }
    )


def _view_token(row: Row) -> dict[str, Any]:
    row = decode_row(row, "attenuation_spec")
    names = ("id", "name", "kind", "parent_token_id", "root_token_id", "attenuation_spec")
    return {name: row[name] for name in (*names, "created_at", "expires_at")}


def list_tokens(call: Call) -> Answer:
    """GET /tokens: the organization's tokens, flat, newest first."""
    return lists.make_page(call, TOKENS, _view_token, only=(_ALIVE,))


def attenuate_token(call: Call) -> Answer:
    """POST /tokens/attenuate: the text of the token in the body proves that the caller holds it."""
    body = validation.read_body(AttenuateToken, call.json())
    with call.lab.store.transaction() as db:
        source = _find_held(call, db, body.token)
        named = str(body.attenuated_parent_token_id) if body.attenuated_parent_token_id else None
        expected = source["id"] if source["parent_token_id"] else None
        if named != expected:
            raise Refusal(400, _parent_hint(expected))
        expires_at = body.attenuation.expires_at
        if expires_at is not None and expires_at <= call.now():
            raise Refusal(400, f"attenuation.expires_at: {times.stamp(expires_at)} is in the past")
        child = call.lab.tokens.attenuate(db, body.token, body.attenuation, body.name, source)
    return Answer({"id": child.id, "token": child.token}, 201)


def _find_held(call: Call, db: Db, token: str) -> Row:
    """Record of the token to restrict, or of its nearest recorded ancestor."""
    try:
        holder = call.lab.tokens.principal(db, token)
    except Refusal as error:
        if error.status != 401:  # noqa: PLR2004 - other refusals do not concern the body
            raise
        raise Refusal(400, "token: it is not valid") from error
    if holder.org_id != call.who.org_id:
        raise Refusal(403, "token: it belongs to another organization")
    row = db.one("SELECT * FROM tokens WHERE id = ?", holder.token_id)
    if row is None:
        raise Refusal(400, "token: it is not valid")
    return row


def _parent_hint(expected: str | None) -> str:
    if expected is None:
        return "attenuated_parent_token_id: leave it out, the token was not attenuated by the service"
    return f"attenuated_parent_token_id: the token was attenuated, give its record's id ({expected})"


def revoke_token(call: Call) -> Answer:
    """POST /tokens/revoke: the calling token's whole family. Of two simultaneous calls both report the first's time."""
    root_id = call.who.root_token_id
    with call.lab.store.transaction() as db:
        children = call.lab.tokens.revoke_family(db, root_id, call.now())
        row = db.one("SELECT revoked_at FROM tokens WHERE id = ?", root_id) or {}
    return Answer({"token_id": root_id, "revoked_at": row.get("revoked_at"), "children_revoked": children})


def get_health(_call: Call) -> Answer:
    """GET /info/health: the lab answers."""
    return Answer({"status": "ok"})


def health_of_database(call: Call) -> Answer:
    """GET /info/health-db: 200 when the database answers, 503 when it does not."""
    try:
        with call.lab.store.transaction() as db:
            db.one("SELECT count(*) AS n FROM organizations")
    except sqlite3.Error as error:
        raise database_unavailable() from error
    return Answer({"status": "ok", "db": "ok"})


def submit_feedback(call: Call) -> Answer:
    """POST /feedback/submit. Every submission is kept, also one about the same request."""
    body = validation.read_body(SubmitFeedback, call.json())
    reference = f"fb_{secrets.token_hex(8)}"
    with call.lab.store.transaction() as db:
        db.insert(
            "feedback",
            {
                "id": reference,
                "org_id": call.who.org_id,
                "created_at": call.now(),
                "content": body.model_dump(mode="json"),
            },
        )
    return Answer({"reference": reference, "message": "thank you for your feedback"}, 201)


class NewOrganization(Body):
    """A customer that the service does not know yet."""

    type: Literal["new_org"]
    name: Label


class ExistingOrganization(Body):
    """An organization that this partner has onboarded."""

    type: Literal["existing_org"]
    id: UUID


class NewUser(Body):
    """The user who will hold the token."""

    email: Annotated[str, Field(pattern=_EMAIL)]
    name: Label | None = None


class MintToken(Body):
    """POST /partners/mint-token (contract 4.6)."""

    org: Annotated[NewOrganization | ExistingOrganization, Field(discriminator="type")]
    user: NewUser
    role: Literal["member", "viewer"] = "member"
    name: Label | None = None
    expires_at: Moment | None = None


def create_organization(
    lab: Lab,
    db: Db,
    *,
    slug: str,
    name: str,
    policy: Sequence[str] = DEFAULT_POLICY,
    onboarded_by: str | None = None,
) -> str:
    """Create an organization with its own clock; its id. `policy` starts with the preferred payment method."""
    org_id = str(uuid.uuid4())
    row: dict[str, Any] = {"id": org_id, "slug": slug, "code": slug.upper(), "name": name}
    db.insert("organizations", row | {"payment_policy": list(policy), "onboarded_by": onboarded_by})
    lab.clock.create(db, org_id)
    return org_id


def _free_slug(db: Db, name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).lower()
    base = re.sub(r"[^a-z0-9]", "", plain)[:_SLUG_MAX] or "org"
    slug, number = base, 1
    while db.one("SELECT 1 FROM organizations WHERE slug = ?", slug):
        number += 1
        slug = f"{base}{number}"
    return slug


def add_user(
    db: Db, *, org_id: str, email: str, role: str, created_at: datetime, name: str | None = None
) -> str:
    """A new user; the id. E-mail addresses are kept in lower case, and each belongs to one user."""
    user_id = str(uuid.uuid4())
    row = {"id": user_id, "org_id": org_id, "email": email.lower(), "role": role, "name": name}
    db.insert("users", row | {"created_at": created_at})
    return user_id


def mint_token(call: Call) -> Answer:
    """POST /partners/mint-token: the new user's token, shown this once."""
    body = validation.read_body(MintToken, call.json())
    email = body.user.email
    with call.lab.store.transaction() as db:
        latest = call.now() + timedelta(days=_DAYS_MAX)
        if body.expires_at is not None and not call.now() < body.expires_at <= latest:
            raise Refusal(400, f"expires_at: a time after now and within {_DAYS_MAX} days")
        if db.one("SELECT 1 FROM users WHERE email = ?", email.lower()):
            raise Refusal(409, f"user.email: {email} has an account already; the user must be new")
        if isinstance(body.org, NewOrganization):
            org_id = _onboard_new(call, db, body.org, email.lower().rpartition("@")[2])
        else:
            org_id = _find_onboarded_organization(call, db, body.org)
        now = call.lab.clock.now(org_id)
        user_id = add_user(
            db, org_id=org_id, email=email, role=body.role, created_at=now, name=body.user.name
        )
        minted = call.lab.tokens.mint(
            db,
            org_id=org_id,
            role=body.role,
            name=body.name or f"minted for {email}",
            expires_at=body.expires_at or now + timedelta(days=DEFAULT_DAYS),
            user_id=user_id,
            kind="minted",
        )
        record = db.one("SELECT expires_at FROM tokens WHERE id = ?", minted.id) or {}
    return Answer(
        {
            "id": minted.id,
            "token": minted.token,
            "user_id": user_id,
            "organization_id": org_id,
            "role": body.role,
            "expires_at": record.get("expires_at"),
        },
        201,
    )


def _onboard_new(call: Call, db: Db, organization: NewOrganization, domain: str) -> str:
    if db.one("SELECT 1 FROM users WHERE substr(email, instr(email, '@') + 1) = ?", domain):
        raise Refusal(409, f"org.type: {domain} has an organization already; new_org is for new customers")
    slug = _free_slug(db, organization.name)
    return create_organization(call.lab, db, slug=slug, name=organization.name, onboarded_by=call.who.org_id)


def _find_onboarded_organization(call: Call, db: Db, organization: ExistingOrganization) -> str:
    """The id of an organization that this partner has onboarded; 403 for any other."""
    row = db.one(
        "SELECT id FROM organizations WHERE id = ? AND onboarded_by = ?",
        str(organization.id),
        call.who.org_id,
    )
    if row is None:
        # One answer for "does not exist" and "another partner's", so that ids of customers do not leak.
        raise Refusal(403, "org.id: not an organization that this partner has onboarded")
    return str(row["id"])
