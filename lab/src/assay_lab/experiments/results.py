"""Results of an experiment: measured at their release, packaged at the first download.

What a release is measured from is stored with it, so that no later change alters a result.
"""

import json
import secrets
import uuid
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Final

from assay_lab.kernel.store import Db, Row, decode_row
from assay_lab.measure import build_package, consult_landscape, measure_records
from assay_lab.requests import lists
from assay_lab.requests.core import Answer, Call, Lab, experiment_of, require_owned, uuid_or_none
from assay_lab.requests.lists import Column, Listing, Sql
from assay_lab.vocabulary import REPLICATES_DEFAULT, ResultsStatus

LISTING: Final = Listing(
    source="results",
    columns={
        "id": Column("results.id", "uuid"),
        "experiment_id": Column("results.experiment_id", "uuid"),
        "result_type": Column("result_type"),
        "title": Column("title"),
        "size_bytes": Column("size_bytes", "int"),
        "created_at": Column("created_at", "timestamp"),
    },
    search=("title",),
    plain=("experiment_id", "result_type", "created_at"),
)
IN_ORDER: Final = replace(LISTING, plain=(), order="position, results.seq")


def release_results(
    lab: Lab,
    db: Db,
    experiment: Row,
    status: ResultsStatus,
    now: datetime,
    *,
    measured_ids: Collection[str] | None = None,
) -> None:
    """Measure and publish results, `partial` or `all`; the complete release replaces the preliminary one.

    `measured_ids` are the sequences that get values, None for all. Those with a value keep it, the others are in progress.
    The caller writes the experiment's `results_status`.
    """
    partial_release = status == ResultsStatus.PARTIAL
    if measured_ids is not None:
        measured_ids = {*measured_ids, *_list_released(db, experiment)}
    sequences = db.all("SELECT * FROM sequences WHERE experiment_id = ? ORDER BY seq", experiment["id"])
    spec = json.loads(experiment["spec"])
    target = db.get("targets", spec.get("target_id"))
    request: dict[str, Any] = {
        "experiment_id": experiment["code"],
        "experiment_type": experiment["experiment_type"],
        "method": spec.get("method"),
        "target": target,
        "sequences": [
            {
                "id": row["id"],
                "name": row["name"],
                "aa_string": row["aa_string"],
                "control": bool(row["is_control"]),
                "metadata": decode_row(row, "metadata")["metadata"],
                "measured": measured_ids is None or row["id"] in measured_ids,
            }
            for row in sequences
        ],
        "n_replicates": spec.get("n_replicates") or REPLICATES_DEFAULT,
        "antigen_concentrations": spec.get("antigen_concentrations"),
        "partial": partial_release,
    }
    if lab.landscape is not None:
        designs = [row["aa_string"].strip().upper() for row in request["sequences"]]
        kind = experiment["experiment_type"]
        request["landscape"] = consult_landscape(lab.landscape, lab.landscape_rules, kind, target, designs)
    key = secrets.token_urlsafe(18)
    package = {
        "id": key,
        "file_name": f"{experiment['code']}{'_preliminary' if partial_release else ''}.zip",
        "request": request,
    }
    db.insert("packages", package)
    for position, record in enumerate(measure_records(**request)):
        _publish_record(db, experiment, key, position, record, now)


def list_reviewed(db: Db, experiment: Row) -> list[str]:
    """Ids of the sequences that the review releases: the first half, at least one."""
    ids = db.column("SELECT id FROM sequences WHERE experiment_id = ? ORDER BY seq", experiment["id"])
    return ids[: max(1, len(ids) // 2)]


def _list_released(db: Db, experiment: Row) -> set[str]:
    """Ids of the sequences that have a value."""
    released = db.column(
        "SELECT request FROM packages WHERE id IN (SELECT package_key FROM results WHERE experiment_id = ?)",
        experiment["id"],
    )
    sequences = [row for request in released for row in json.loads(request)["sequences"]]
    return {row["id"] for row in sequences if row.get("measured")}


def _publish_record(
    db: Db, experiment: Row, package_key: str, position: int, record: dict[str, Any], created_at: datetime
) -> None:
    row = {
        **{name: record[name] for name in ("result_type", "title", "summary", "metadata")},
        "package_key": package_key,
        "size_bytes": len(json.dumps(record)),
        "created_at": created_at,
    }
    owner = {"org_id": experiment["org_id"], "experiment_id": experiment["id"], "position": position}
    known = db.one(
        "SELECT id FROM results WHERE experiment_id = ? AND position = ?", experiment["id"], position
    )
    if known:
        db.update("results", known["id"], **row)
    else:
        db.insert("results", {"id": str(uuid.uuid4()), **owner, **row})


def find_package(db: Db, key: str) -> tuple[str, bytes] | None:
    """File name and content of a data package, built at its first download; None for an unknown key."""
    row = db.get("packages", key)
    if row is None:
        return None
    if row["content"] is None:
        row["content"] = build_package(**json.loads(row["request"]))
        db.update("packages", key, content=row["content"])
    return row["file_name"], row["content"]


def list_results(call: Call) -> Answer:
    """GET /results: summaries (contract 2.10). `size_bytes` is the size of the record."""
    return lists.make_page(call, LISTING, _view_summary)


def of_experiment(call: Call) -> Answer:
    """GET /experiments/{id}/results: whole records; empty until something is released."""
    with call.lab.store.transaction() as db:
        experiment = experiment_of(db, call)
        condition = Sql("results.experiment_id = ?", (experiment["id"],))
        return lists.make_page(call, IN_ORDER, partial(view_result, call.lab), only=(condition,))


def get_result(call: Call) -> Answer:
    """GET /results/{result_id}."""
    with call.lab.store.transaction() as db:
        row = require_owned(db, call, "results", uuid_or_none(call.path["result_id"]), "result")
    return Answer(view_result(call.lab, row))


def _view_summary(row: Row) -> dict[str, Any]:
    names = ("id", "experiment_id", "result_type", "title", "created_at", "size_bytes")
    return {name: row[name] for name in names}


def view_result(lab: Lab, row: Row) -> dict[str, Any]:
    """A whole result."""
    names = ("id", "title", "experiment_id", "result_type", "created_at", "summary", "metadata")
    row = decode_row(row, "summary", "metadata")
    url = lab.portal_url("packages", row["package_key"])
    return {name: row[name] for name in names} | {"data_package_url": url}
