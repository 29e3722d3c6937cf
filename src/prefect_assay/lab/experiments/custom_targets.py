"""Requests for targets that the catalog does not have (service shapes, Targets).

Staff decide: `decide_custom_target` is the lab event that stands for them. An approved target is in the catalog of
the organisation that asked for it, and in no other: its residues may be nobody else's business.
"""

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.kernel.store import Db, Row
from prefect_assay.lab.requests import lists, validation
from prefect_assay.lab.requests.core import Answer, Call, Lab, owned, uuid_or_none
from prefect_assay.lab.requests.lists import Column, Listing
from prefect_assay.lab.requests.schemas import RequestCustomTarget
from prefect_assay.lab.requests.validation import Entry, Finding

PENDING: Final = "pending_review"
APPROVED: Final = "approved"
REJECTED: Final = "rejected"
# Behind the catalog's own targets, however many a later version brings.
_FIRST_CUSTOM: Final = 1_000_000

LISTING: Final = Listing(
    source="custom_targets",
    columns={
        "id": Column("custom_targets.id", "uuid"),
        "name": Column("name"),
        "product_id": Column("product_id"),
        "pdb_id": Column("pdb_id"),
        "status": Column("status", "enum", frozenset({PENDING, APPROVED, REJECTED})),
        "created_at": Column("created_at", "timestamp"),
    },
    search=("name", "product_id"),
    plain=("status", "name", "product_id"),
)

_SHOWN: Final = (
    "id",
    "name",
    "product_id",
    "sequence",
    "pdb_id",
    "vendor",
    "note",
    "product_url",
    "molecular_weight",
    "status",
    "reason",
    "target_id",
    "created_at",
    "updated_at",
)


def view(_db: Db, row: Row) -> dict[str, Any]:
    """A request as its own record; `target_id` is the catalog target that it became."""
    return {name: row[name] for name in _SHOWN}


def listing(call: Call) -> Answer:
    """GET /targets/request-custom, newest first."""
    with call.lab.store.transaction() as db:
        return Answer(lists.page(db, LISTING, call, render=view))


def detail(call: Call) -> Answer:
    """GET /targets/request-custom/{request_id}."""
    with call.lab.store.transaction() as db:
        asked = uuid_or_none(call.path["request_id"])
        return Answer(view(db, owned(db, call, "custom_targets", asked, "custom target request")))


def request(call: Call) -> Answer:
    """POST /targets/request-custom."""
    wanted = validation.read(RequestCustomTarget, call.json(), _findings)
    with call.lab.store.transaction() as db:
        if _known(db, call.who.org_id, wanted.product_id):
            raise Refusal(409, f"product_id: {wanted.product_id!r} is known already")
        at = call.now()
        row = {
            "id": str(uuid.uuid4()),
            "org_id": call.who.org_id,
            "name": wanted.name,
            "product_id": wanted.product_id,
            "sequence": wanted.sequence.upper() if wanted.sequence else None,
            "pdb_id": wanted.pdb_id,
            "vendor": wanted.vendor,
            "note": wanted.note,
            "product_url": wanted.product_url,
            "molecular_weight": wanted.molecular_weight,
            "status": PENDING,
            "created_at": at,
            "updated_at": at,
        }
        db.insert("custom_targets", row)
        return Answer(view(db, db.known("custom_targets", row["id"], "custom target request")), 201)


def _findings(wanted: RequestCustomTarget) -> list[Finding]:
    if wanted.sequence is None and wanted.pdb_id is None:
        return [Finding("sequence: needed, unless there is a pdb_id")]
    if wanted.sequence is None:
        return []
    return validation.sequence_findings([Entry("sequence", "sequence", wanted.sequence)])


def _known(db: Db, org_id: str, product_id: str) -> bool:
    asked = db.one("SELECT 1 FROM custom_targets WHERE org_id = ? AND product_id = ?", org_id, product_id)
    sold = db.one("SELECT 1 FROM targets WHERE org_id IS NULL AND catalog_number = ?", product_id)
    return bool(asked or sold)


def decide_custom_target(
    lab: Lab,
    db: Db,
    request_id: str,
    at: datetime,
    *,
    approved: bool,
    pricing: Mapping[str, Any] | None = None,
    reason: str | None = None,
) -> Row:
    """Lab event: staff decide about a request; 404 for an unknown one, 409 when it is decided already.

    `pricing` is the self-service price of the new target: `{"type": "per_sequence", "price_per_sequence_cents": 4000}`
    or `{"type": "per_broken_lot", "lot_prices": [...]}`; without one the target has to be quoted by hand. Returns
    the request as the API shows it.
    """
    row = db.known("custom_targets", uuid_or_none(request_id), "custom target request")
    if row["status"] != PENDING:
        raise Refusal(409, f"the request is {row['status']} already")
    changes: dict[str, Any] = {
        "status": APPROVED if approved else REJECTED,
        "reason": reason,
        "updated_at": at,
    }
    if approved:
        changes["target_id"] = _into_catalog(lab, db, row, pricing)
    db.update("custom_targets", row["id"], **changes)
    return view(db, db.known("custom_targets", row["id"], "custom target request"))


def _into_catalog(lab: Lab, db: Db, row: Row, pricing: Mapping[str, Any] | None) -> str:
    last = db.one("SELECT max(seq) AS n FROM targets")
    names = ("sequence", "pdb_id", "molecular_weight")
    details = {"description": "Made to order"} | {name: row[name] for name in names}
    target = {
        "id": str(uuid.uuid4()),
        "org_id": row["org_id"],
        "seq": max(int((last or {}).get("n") or 0), _FIRST_CUSTOM) + 1,
        "name": row["name"],
        "vendor_name": row["vendor"] or "Custom",
        "catalog_number": row["product_id"],
        "url": row["product_url"] or lab.api_url(f"/targets/request-custom/{row['id']}"),
        "pricing": dict(pricing) if pricing else None,
        "details": {name: value for name, value in details.items() if value is not None},
    }
    db.insert("targets", target)
    return str(target["id"])
