"""Partner routes (contract 4.6, mint-token rules): new customers, and new users of customers that came this way.

The contract shows only `org.type` and `expires_at` of the request; the other fields are this lab's choice.
"""

from datetime import datetime
from typing import Final

from prefect_assay.lab.account import organizations
from prefect_assay.lab.kernel import times
from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.kernel.store import Db
from prefect_assay.lab.requests import validation
from prefect_assay.lab.requests.core import Answer, Call
from prefect_assay.lab.tokens.registry import DEFAULT_DAYS, EXPIRY_DAYS
from prefect_assay.lab.tokens.schemas import ExistingOrganization, MintToken, NewOrganization

_DAYS_MAX: Final = max(EXPIRY_DAYS)


def mint_token(call: Call) -> Answer:
    """POST /partners/mint-token: the new user's token, shown this once."""
    wanted = validation.read(MintToken, call.json())
    email = wanted.user.email
    with call.lab.store.transaction() as db:
        expires_at = _expiry(call, wanted.expires_at)
        if db.one("SELECT 1 FROM users WHERE email = ?", email.lower()):
            raise Refusal(409, f"user.email: {email} has an account already; the user must be new")
        if isinstance(wanted.org, NewOrganization):
            org_id = _new(call, db, wanted.org, organizations.domain(email))
        else:
            org_id = _existing(call, db, wanted.org)
        now = call.lab.clock.now(org_id)
        user_id = organizations.add_user(
            db, org_id=org_id, email=email, role=wanted.role, at=now, name=wanted.user.name
        )
        minted = call.lab.tokens.mint(
            db,
            org_id=org_id,
            role=wanted.role,
            name=wanted.name or f"minted for {email}",
            expires_at=expires_at or times.later(now, days=DEFAULT_DAYS),
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


def _expiry(call: Call, wanted: datetime | None) -> datetime | None:
    now = call.now()
    if wanted is not None and not now < wanted <= times.later(now, days=_DAYS_MAX):
        raise Refusal(400, f"expires_at: a time after now and within {_DAYS_MAX} days")
    return wanted


def _new(call: Call, db: Db, wanted: NewOrganization, domain: str) -> str:
    if organizations.domain_is_known(db, domain):
        raise Refusal(409, f"org.type: {domain} has an organization already; new_org is for new customers")
    slug = organizations.free_slug(db, wanted.name)
    return organizations.create(call.lab, db, slug=slug, name=wanted.name, onboarded_by=call.who.org_id)


def _existing(call: Call, db: Db, wanted: ExistingOrganization) -> str:
    row = db.one(
        "SELECT id FROM organizations WHERE id = ? AND onboarded_by = ?", str(wanted.id), call.who.org_id
    )
    if row is None:
        # One answer for "does not exist" and "another partner's": ids of customers are nobody's business.
        raise Refusal(403, "org.id: not an organization that this partner has onboarded")
    return str(row["id"])
