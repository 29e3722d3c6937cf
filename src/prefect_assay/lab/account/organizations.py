"""Organisations and their users, and how partners onboard them (contract 4.6, mint-token rules).

Of the partners' request the contract shows only `org.type` and `expires_at`; the other fields are this lab's choice.
"""

import re
import unicodedata
import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import Field

from prefect_assay.lab.kernel.refusals import Body, Refusal
from prefect_assay.lab.kernel.store import Db
from prefect_assay.lab.requests import validation
from prefect_assay.lab.requests.core import Answer, Call, Lab
from prefect_assay.lab.tokens.permissions import Label, Moment
from prefect_assay.lab.tokens.registry import DEFAULT_DAYS, EXPIRY_DAYS
from prefect_assay.models.vocabulary import PaymentMethod

DEFAULT_POLICY: Final = (PaymentMethod.ASYNC_INVOICE, PaymentMethod.X402_EXACT, PaymentMethod.MPP_SPT)
_SLUG_MAX: Final = 20
_DAYS_MAX: Final = max(EXPIRY_DAYS)
_EMAIL: Final = r"^[^@\s\"<>\x00-\x1f]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?$"


class NewOrganization(Body):
    """A customer that the service does not know yet."""

    type: Literal["new_org"]
    name: Label


class ExistingOrganization(Body):
    """An organisation that this partner has onboarded."""

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


def create(
    lab: Lab,
    db: Db,
    *,
    slug: str,
    name: str,
    policy: Sequence[str] = DEFAULT_POLICY,
    onboarded_by: str | None = None,
) -> str:
    """Create an organisation with its own clock; its id. `policy` starts with the preferred payment method."""
    org_id = str(uuid.uuid4())
    row: dict[str, Any] = {"id": org_id, "slug": slug, "code": slug.upper(), "name": name}
    db.insert("organizations", row | {"payment_policy": list(policy), "onboarded_by": onboarded_by})
    lab.clock.create(db, org_id)
    return org_id


def _free_slug(db: Db, name: str) -> str:
    """A free slug, derived from the name."""
    plain = unicodedata.normalize("NFKD", name).lower()
    base = re.sub(r"[^a-z0-9]", "", plain)[:_SLUG_MAX] or "org"
    slug, number = base, 1
    while db.one("SELECT 1 FROM organizations WHERE slug = ?", slug):
        number += 1
        slug = f"{base}{number}"
    return slug


def add_user(db: Db, *, org_id: str, email: str, role: str, at: datetime, name: str | None = None) -> str:
    """A new user; the id. E-mail addresses are kept in lower case, and each belongs to one user."""
    user_id = str(uuid.uuid4())
    row = {"id": user_id, "org_id": org_id, "email": email.lower(), "role": role, "name": name}
    db.insert("users", row | {"created_at": at})
    return user_id


def mint_token(call: Call) -> Answer:
    """POST /partners/mint-token: the new user's token, shown this once."""
    wanted = validation.read(MintToken, call.json())
    email = wanted.user.email
    with call.lab.store.transaction() as db:
        latest = call.now() + timedelta(days=_DAYS_MAX)
        if wanted.expires_at is not None and not call.now() < wanted.expires_at <= latest:
            raise Refusal(400, f"expires_at: a time after now and within {_DAYS_MAX} days")
        if db.one("SELECT 1 FROM users WHERE email = ?", email.lower()):
            raise Refusal(409, f"user.email: {email} has an account already; the user must be new")
        if isinstance(wanted.org, NewOrganization):
            org_id = _new(call, db, wanted.org, email.lower().rpartition("@")[2])
        else:
            org_id = _existing(call, db, wanted.org)
        now = call.lab.clock.now(org_id)
        user_id = add_user(db, org_id=org_id, email=email, role=wanted.role, at=now, name=wanted.user.name)
        minted = call.lab.tokens.mint(
            db,
            org_id=org_id,
            role=wanted.role,
            name=wanted.name or f"minted for {email}",
            expires_at=wanted.expires_at or now + timedelta(days=DEFAULT_DAYS),
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
            "role": wanted.role,
            "expires_at": record.get("expires_at"),
        },
        201,
    )


def _new(call: Call, db: Db, wanted: NewOrganization, domain: str) -> str:
    if db.one("SELECT 1 FROM users WHERE substr(email, instr(email, '@') + 1) = ?", domain):
        raise Refusal(409, f"org.type: {domain} has an organization already; new_org is for new customers")
    slug = _free_slug(db, wanted.name)
    return create(call.lab, db, slug=slug, name=wanted.name, onboarded_by=call.who.org_id)


def _existing(call: Call, db: Db, wanted: ExistingOrganization) -> str:
    row = db.one(
        "SELECT id FROM organizations WHERE id = ? AND onboarded_by = ?", str(wanted.id), call.who.org_id
    )
    if row is None:
        # One answer for "does not exist" and "another partner's", so that ids of customers do not leak.
        raise Refusal(403, "org.id: not an organization that this partner has onboarded")
    return str(row["id"])
