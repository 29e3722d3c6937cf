"""Fills and empties a lab: the catalog, organizations with their tokens, and many experiments at once for load tests."""

import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from assay_lab.account.handlers import DEFAULT_POLICY, add_user, create_organization
from assay_lab.billing import specs
from assay_lab.experiments import orders, state_machine
from assay_lab.kernel.refusals import Refusal
from assay_lab.kernel.store import RESET_TABLES, Db, decode_row
from assay_lab.measure import CATALOG
from assay_lab.requests.core import Lab
from assay_lab.tokens.permissions import ROLES, Role
from assay_lab.vocabulary import (
    ExperimentType,
    Method,
    PaymentMethod,
)

DEFAULT_SLUG: Final = "lab"
_LETTERS: Final = "ACDEFGHIKLMNPQRSTVWY"
START_DAYS: Final = 365
# On a scaled clock a year passes while its user sleeps.
_NEVER: Final = datetime(9999, 12, 31, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Seeded:
    """An organization and its tokens, which cannot be read again."""

    organization_id: str
    member_token: str = field(repr=False)
    viewer_token: str = field(repr=False)
    partner_token: str = field(repr=False)

    def view(self) -> dict[str, str]:
        """As the control surface answers."""
        return asdict(self)


def start_lab(lab: Lab) -> Seeded:
    """Load the catalog, and give the default organization tokens for this start of the lab."""
    with lab.store.transaction() as db:
        _load_catalog(lab, db)
        row = db.one("SELECT id FROM organizations WHERE slug = ?", DEFAULT_SLUG)
        org_id = row["id"] if row else create_organization(lab, db, slug=DEFAULT_SLUG, name="Local lab")
        fixed_tokens: dict[Role, str | None] = {
            "member": lab.settings.member_token,
            "viewer": lab.settings.viewer_token,
            "partner": lab.settings.partner_token,
        }
        return _make_tokens(lab, db, org_id, DEFAULT_SLUG, fixed_tokens)


def add_organization(lab: Lab, slug: str, name: str, policy: list[str] | None = None) -> Seeded:
    """A further organization with its own clock and tokens; 400 for a bad slug or policy, 409 for a taken slug."""
    if not slug.isascii() or not slug.isalnum() or slug != slug.lower():
        raise Refusal(400, "slug: lower-case letters and digits only")
    unknown = set(policy or ()) - set(PaymentMethod)
    if unknown or policy == []:
        raise Refusal(400, f"payment_policy: a list of {', '.join(PaymentMethod)}")
    with lab.store.transaction() as db:
        if db.one("SELECT 1 FROM organizations WHERE slug = ?", slug):
            raise Refusal(409, f"organization {slug!r} exists already")
        org_id = create_organization(lab, db, slug=slug, name=name, policy=policy or DEFAULT_POLICY)
        return _make_tokens(lab, db, org_id, slug, {})


def make_email(role: str, slug: str = DEFAULT_SLUG) -> str:
    """Address of the user of this role that an organization begins with."""
    return f"{role}@{slug}.example"


def reset_lab(lab: Lab) -> Seeded:
    """Empty the lab. Tokens given in the settings stay valid; random ones are replaced."""
    with lab.store.transaction() as db:
        for table in RESET_TABLES:
            db.run(f"DELETE FROM {table}")  # noqa: S608 - own names
        return start_lab(lab)


def _make_tokens(lab: Lab, db: Db, org_id: str, slug: str, fixed_tokens: Mapping[Role, str | None]) -> Seeded:
    """A user and a token for each role. A text given in the settings is the same token at every start, for ever."""
    scaled = lab.clock.row(org_id)["mode"] == "scaled"
    end = _NEVER if scaled else lab.clock.now(org_id) + timedelta(days=START_DAYS)
    texts: dict[Role, str] = {}
    for role in ROLES:
        user_id = _make_user(lab, db, org_id, make_email(role, slug), role)
        name = f"{role} of the lab's start"
        text = fixed_tokens.get(role)
        if text is None:
            minted = lab.tokens.mint(
                db, org_id=org_id, role=role, name=name, expires_at=end, user_id=user_id, kind="start"
            )
            texts[role] = minted.token
        else:
            lab.tokens.represent_by(
                db, text, name=name, role=role, org_id=org_id, user_id=user_id, expires_at=_NEVER
            )
            texts[role] = text
    return Seeded(org_id, texts["member"], texts["viewer"], texts["partner"])


def _make_user(lab: Lab, db: Db, org_id: str, email: str, role: str) -> str:
    row = db.one("SELECT id FROM users WHERE email = ?", email)
    now = lab.clock.now(org_id)
    return row["id"] if row else add_user(db, org_id=org_id, email=email, role=role, created_at=now)


def _load_catalog(lab: Lab, db: Db) -> None:
    db.run("DELETE FROM targets WHERE org_id IS NULL")
    for number, target in enumerate((*CATALOG, *(lab.landscape.targets if lab.landscape else ()))):
        details = target.get("details") or {}
        names = ("id", "name", "vendor_name", "catalog_number", "url", "uniprot_id", "pricing", "details")
        row = {name: target.get(name) for name in names}
        conjugated = int(bool(details.get("conjugated")))
        db.insert(
            "targets", {"seq": number, "purity": details.get("purity"), "conjugated": conjugated, **row}
        )


def fill_experiments(
    lab: Lab, db: Db, org_id: str, *, experiments: int, stage: str, sequences: int
) -> list[str]:
    """Make affinity experiments in one transaction, a second of lab time apart up to now, oldest first; their ids."""
    now = lab.clock.now(org_id)
    org = decode_row(db.one("SELECT * FROM organizations WHERE id = ?", org_id) or {}, "payment_policy")
    db.run("UPDATE organizations SET experiments = experiments + ? WHERE id = ?", experiments, org_id)
    target = db.one("SELECT id FROM targets WHERE pricing LIKE '%per_sequence%' ORDER BY seq LIMIT 1") or {}
    spec = {"experiment_type": ExperimentType.AFFINITY, "method": Method.BLI, "target_id": target.get("id")}
    priced = specs.target_row(db, spec["target_id"], org_id)
    ids: list[str] = []
    for place in range(experiments):
        number = org["experiments"] + place + 1
        created_at = now - timedelta(seconds=experiments - 1 - place)
        name, rail = f"filled in {number}", org["payment_policy"][0]
        row = orders.make_draft(
            org, number, spec, priced, name=name, payment_method=rail, created_at=created_at
        )
        db.insert("experiments", row)
        _add_sequences(db, row["id"], number, sequences, created_at)
        ids.append(row["id"])
    for experiment_id in ids if stage != "draft" else ():
        experiment = db.known("experiments", experiment_id, "experiment")
        if stage == "ordered":
            orders.accept_at_once(lab, db, experiment, now)
        else:
            state_machine.mark_submitted(lab, db, experiment, now)
    return ids


def _add_sequences(db: Db, experiment_id: str, number: int, count: int, created_at: datetime) -> None:
    for place in range(count):
        # Different everywhere, so that no two are duplicates.
        residues = "MKT" + "".join(_LETTERS[int(digit)] for digit in f"{number}{place:02d}")
        row = {"id": str(uuid.uuid4()), "experiment_id": experiment_id, "name": f"design_{place + 1}"}
        db.insert("sequences", row | {"aa_string": residues, "is_control": 0, "created_at": created_at})
