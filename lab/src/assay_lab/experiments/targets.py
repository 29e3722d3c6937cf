"""Targets: the catalog (contract 4.4), and requests for targets that it lacks (service shapes, Targets).

An approved target is only in the catalog of the organization that requested it: its residues are confidential.
"""

import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final

from assay_lab.billing import specs
from assay_lab.kernel.refusals import Refusal, not_found
from assay_lab.kernel.store import Db, Row, decode_row
from assay_lab.requests import lists, validation
from assay_lab.requests.core import Answer, Call, Lab, require_owned, uuid_or_none
from assay_lab.requests.lists import Column, Listing, Sql
from assay_lab.requests.schemas import RequestCustomTarget
from assay_lab.requests.validation import Entry, Violation

PENDING: Final = "pending_review"
APPROVED: Final = "approved"
REJECTED: Final = "rejected"
# After the catalog's own targets, however many a later version has.
_FIRST_CUSTOM: Final = 1_000_000
_FLAGS: Final = {"true": True, "1": True, "false": False, "0": False}

LISTING: Final = Listing(
    source="targets",
    columns={
        "id": Column("targets.id", "uuid"),
        "name": Column("name"),
        "vendor_name": Column("vendor_name"),
        "vendor": Column("vendor_name"),
        "catalog_number": Column("catalog_number"),
        "purity": Column("purity", "float"),
        "uniprot_id": Column("uniprot_id"),
    },
    search=("name", "catalog_number"),  # contract 4.1: names and codes; a vendor has a filter of its own
    plain=("name", "vendor_name", "vendor", "catalog_number"),
    order="targets.seq",
    by_org=False,
)
CUSTOM_LISTING: Final = Listing(
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


def list_targets(call: Call) -> Answer:
    """GET /targets."""
    only = [Sql("org_id IS NULL OR org_id = ?", (call.who.org_id,))]
    detailed = _read_flag(call, "detailed")
    if _read_flag(call, "selfservice_only"):
        only.append(Sql("pricing IS NOT NULL"))
    if not _read_flag(call, "show_conjugated"):
        only.append(Sql("NOT conjugated"))
    return lists.make_page(call, LISTING, partial(_view_target, detailed=detailed), only=tuple(only))


def _read_flag(call: Call, name: str) -> bool:
    text = call.query.get(name, "false").lower()
    if text not in _FLAGS:
        raise Refusal(400, f"{name} must be true or false, not {text!r}")
    return _FLAGS[text]


def get_target(call: Call) -> Answer:
    """GET /targets/{target_id}."""
    with call.lab.store.transaction() as db:
        row = specs.target_row(db, uuid_or_none(call.path["target_id"]), call.who.org_id)
    if row is None:
        raise not_found("target")
    return Answer(_view_target(row, detailed=True))


def _view_target(row: Row, *, detailed: bool) -> dict[str, Any]:
    row = decode_row(row, "pricing", "details")
    names = ("id", "name", "vendor_name", "catalog_number", "url", "uniprot_id", "pricing")
    return {name: row[name] for name in (*names, *(("details",) if detailed else ()))}


def list_requests(call: Call) -> Answer:
    """GET /targets/request-custom, newest first."""
    return lists.make_page(call, CUSTOM_LISTING, _request_view)


def show_request(call: Call) -> Answer:
    """GET /targets/request-custom/{request_id}."""
    with call.lab.store.transaction() as db:
        row = require_owned(
            db, call, "custom_targets", uuid_or_none(call.path["request_id"]), "custom target request"
        )
    return Answer(_request_view(row))


def request_custom(call: Call) -> Answer:
    """POST /targets/request-custom."""
    request = validation.read_body(RequestCustomTarget, call.json(), _find_violations)
    with call.lab.store.transaction() as db:
        if _is_known(db, call.who.org_id, request.product_id):
            raise Refusal(409, f"product_id: {request.product_id!r} is known already")
        now = call.now()
        row = {
            **request.model_dump(),
            "id": str(uuid.uuid4()),
            "org_id": call.who.org_id,
            "sequence": request.sequence.upper() if request.sequence else None,
            "status": PENDING,
            "created_at": now,
            "updated_at": now,
        }
        db.insert("custom_targets", row)
        return Answer(_request_view(_request_row(db, row["id"])), 201)


def _find_violations(request: RequestCustomTarget) -> Iterable[Violation]:
    if request.sequence is not None:
        return validation.sequence_violations([Entry("sequence", "sequence", request.sequence)])
    if request.pdb_id is None:
        return [Violation("sequence: needed, unless there is a pdb_id")]
    return []


def _is_known(db: Db, org_id: str, product_id: str) -> bool:
    requested = db.one("SELECT 1 FROM custom_targets WHERE org_id = ? AND product_id = ?", org_id, product_id)
    sold = db.one("SELECT 1 FROM targets WHERE org_id IS NULL AND catalog_number = ?", product_id)
    return bool(requested or sold)


def _request_row(db: Db, request_id: str | None) -> Row:
    return db.known("custom_targets", request_id, "custom target request")


def _request_view(row: Row) -> dict[str, Any]:
    """A request as its own record; `target_id` is the catalog target that it became."""
    names = ("id", "name", "product_id", "sequence", "pdb_id")
    more = ("status", "reason", "target_id", "created_at", "updated_at")
    return {name: row[name] for name in (*names, *more)}


def decide_custom_target(
    lab: Lab,
    db: Db,
    request_id: str,
    decided_at: datetime,
    *,
    approved: bool,
    pricing: Mapping[str, Any] | None = None,
    reason: str | None = None,
) -> Row:
    """Lab event: staff decide about a request; 409 for a decided one.

    `pricing` is the self-service price of the new target: `{"type": "per_sequence", "price_per_sequence_cents": 4000}`
    or `{"type": "per_broken_lot", "lot_prices": [...]}`; without one the target is quoted by hand.
    """
    row = _request_row(db, uuid_or_none(request_id))
    if row["status"] != PENDING:
        raise Refusal(409, f"the request is {row['status']} already")
    status = APPROVED if approved else REJECTED
    target = {"target_id": _into_catalog(lab, db, row, pricing)} if approved else {}
    db.update("custom_targets", row["id"], status=status, reason=reason, updated_at=decided_at, **target)
    return _request_view(_request_row(db, row["id"]))


def _into_catalog(lab: Lab, db: Db, row: Row, pricing: Mapping[str, Any] | None) -> str:
    [last] = db.column("SELECT max(seq) FROM targets")
    details = {"description": "Made to order", "sequence": row["sequence"], "pdb_id": row["pdb_id"]}
    target_id = str(uuid.uuid4())
    target = {
        "id": target_id,
        "org_id": row["org_id"],
        "seq": max(int(last or 0), _FIRST_CUSTOM) + 1,
        "name": row["name"],
        "vendor_name": "Custom",
        "catalog_number": row["product_id"],
        "url": lab.api_url(f"/targets/request-custom/{row['id']}"),
        "pricing": dict(pricing) if pricing else None,
        "details": {name: value for name, value in details.items() if value is not None},
    }
    db.insert("targets", target)
    return target_id
