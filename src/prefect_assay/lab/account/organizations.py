"""Organisations and their users. Slugs are lower-case letters and digits: tokens carry them (contract 5.2)."""

import re
import unicodedata
import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from prefect_assay.lab.kernel.store import Db
from prefect_assay.lab.requests.core import Lab
from prefect_assay.models.vocabulary import PaymentMethod

DEFAULT_POLICY: Final = (PaymentMethod.ASYNC_INVOICE, PaymentMethod.X402_EXACT, PaymentMethod.MPP_SPT)
_SLUG_MAX: Final = 20


def create(
    lab: Lab,
    db: Db,
    *,
    slug: str,
    name: str,
    policy: Sequence[str] = DEFAULT_POLICY,
    onboarded_by: str | None = None,
) -> str:
    """A new organisation with its own clock; its id.

    The slug is free, of lower-case letters and digits. `policy` starts with the preferred payment method;
    `onboarded_by` is the organisation of the partner that brought it.
    """
    org_id = str(uuid.uuid4())
    row: dict[str, Any] = {"id": org_id, "slug": slug, "code": slug.upper(), "name": name}
    db.insert("organizations", row | {"payment_policy": list(policy), "onboarded_by": onboarded_by})
    lab.clock.create(db, org_id)
    return org_id


def free_slug(db: Db, name: str) -> str:
    """A slug that is made of the name and not taken."""
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


def domain(email: str) -> str:
    """The part after the @."""
    return email.lower().rpartition("@")[2]


def domain_is_known(db: Db, name: str) -> bool:
    """Whether any organisation has a user of this e-mail domain."""
    return db.one("SELECT 1 FROM users WHERE substr(email, instr(email, '@') + 1) = ?", name) is not None
