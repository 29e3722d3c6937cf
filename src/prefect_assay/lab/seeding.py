"""Fills a lab: the catalog, organisations and their tokens; and empties it again."""

import uuid
from dataclasses import dataclass, field
from typing import Any, Final

from prefect_assay.lab import tokens
from prefect_assay.lab.core import Lab
from prefect_assay.lab.measure.targets import CATALOG
from prefect_assay.lab.refusals import Refusal
from prefect_assay.lab.store import Db
from prefect_assay.lab.tables import ALL_TABLES
from prefect_assay.models.vocabulary import PaymentMethod

DEFAULT_SLUG: Final = "lab"
DEFAULT_POLICY: Final = (PaymentMethod.ASYNC_INVOICE, PaymentMethod.X402_EXACT, PaymentMethod.MPP_SPT)


@dataclass(frozen=True, slots=True)
class Seeded:
    """An organisation and the tokens minted for it; they cannot be read again."""

    organization_id: str
    member_token: str = field(repr=False)
    viewer_token: str = field(repr=False)

    def view(self) -> dict[str, str]:
        """As the control surface answers."""
        return {
            "organization_id": self.organization_id,
            "member_token": self.member_token,
            "viewer_token": self.viewer_token,
        }


def start(lab: Lab) -> Seeded:
    """Load the catalog, and give the default organisation tokens for this start of the lab."""
    with lab.store.transaction() as db:
        _load_catalog(db)
        row = db.one("SELECT id FROM organizations WHERE slug = ?", DEFAULT_SLUG)
        org_id = row["id"] if row else _organization(lab, db, DEFAULT_SLUG, "Local lab", list(DEFAULT_POLICY))
        return _tokens(lab, db, org_id, lab.settings.member_token, lab.settings.viewer_token)


def organization(lab: Lab, slug: str, name: str, policy: list[str] | None = None) -> Seeded:
    """A further organisation with its own clock and tokens.

    Raises:
        Refusal: 400 for a bad slug or policy, 409 when the slug is taken.
    """
    if not slug.isascii() or not slug.isalnum() or slug != slug.lower():
        raise Refusal(400, "slug: lower-case letters and digits only")
    unknown = set(policy or ()) - set(PaymentMethod)
    if unknown or policy == []:
        raise Refusal(400, f"payment_policy: a list of {', '.join(PaymentMethod)}")
    with lab.store.transaction() as db:
        if db.one("SELECT 1 FROM organizations WHERE slug = ?", slug):
            raise Refusal(409, f"organization {slug!r} exists already")
        org_id = _organization(lab, db, slug, name, policy or list(DEFAULT_POLICY))
        return _tokens(lab, db, org_id, None, None)


def reset(lab: Lab) -> Seeded:
    """Back to an empty lab. Tokens given in the settings stay valid; random ones are minted anew."""
    with lab.store.transaction() as db:
        for table in ALL_TABLES:
            db.run(f"DELETE FROM {table}")  # noqa: S608 - own names
        return start(lab)


def _organization(lab: Lab, db: Db, slug: str, name: str, policy: list[str]) -> str:
    org_id = str(uuid.uuid4())
    row: dict[str, Any] = {"id": org_id, "slug": slug, "code": slug.upper(), "name": name}
    db.insert("organizations", row | {"payment_policy": policy})
    lab.clock.create(db, org_id)
    return org_id


def _tokens(lab: Lab, db: Db, org_id: str, member: str | None, viewer: str | None) -> Seeded:
    minted: dict[tokens.Role, str] = {}
    given: dict[tokens.Role, str | None] = {"member": member, "viewer": viewer}
    for role, token in given.items():
        if token is not None:
            tokens.forget(db, token)  # the same token at every start: keep one row, with a fresh expiry
        minted[role] = tokens.mint(
            db,
            org_id=org_id,
            role=role,
            name=f"{role} of the lab's start",
            prefix=lab.settings.token_prefix,
            now=lab.clock.now(org_id),
            token=token,
        )
    return Seeded(org_id, minted["member"], minted["viewer"])


def _load_catalog(db: Db) -> None:
    db.run("DELETE FROM targets")
    for number, target in enumerate(CATALOG):
        details = target.get("details") or {}
        names = ("id", "name", "vendor_name", "catalog_number", "url", "uniprot_id", "pricing", "details")
        row = {name: target.get(name) for name in names}
        conjugated = int(bool(details.get("conjugated")))
        db.insert(
            "targets", {"seq": number, "purity": details.get("purity"), "conjugated": conjugated, **row}
        )
