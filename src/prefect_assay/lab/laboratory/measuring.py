"""Results of an experiment: fixed when they are released, measured when somebody looks, packaged when downloaded.

What a release is measured from is kept with it, so that nothing that happens later changes a result. Measuring
itself waits, because a lab that runs through weeks in a moment would spend most of it on results nobody reads.
"""

import json
import secrets
import uuid
from collections.abc import Collection
from datetime import datetime
from typing import Any

from prefect_assay.lab.kernel.store import Db, Row, load
from prefect_assay.lab.measure import build_package, measure_records
from prefect_assay.models.vocabulary import REPLICATES_DEFAULT, ResultsStatus


def _request(db: Db, experiment: Row, *, partial: bool) -> dict[str, Any]:
    spec = json.loads(experiment["spec"])
    sequences = db.all("SELECT * FROM sequences WHERE experiment_id = ? ORDER BY seq", experiment["id"])
    return {
        "experiment_id": experiment["code"],
        "experiment_type": experiment["experiment_type"],
        "method": spec.get("method"),
        "target_id": spec.get("target_id"),
        "sequences": [
            {
                "id": row["id"],
                "name": row["name"],
                "aa_string": row["aa_string"],
                "control": bool(row["is_control"]),
                "metadata": load(row, "metadata")["metadata"],
            }
            for row in sequences
        ],
        "n_replicates": spec.get("n_replicates") or REPLICATES_DEFAULT,
        "antigen_concentrations": spec.get("antigen_concentrations"),
        "partial": partial,
    }


def _fields(db: Db, package: Row) -> Any:
    """What is measured: the target, which never changes, is kept by its id."""
    request = json.loads(package["request"])
    return request | {"target": db.one("SELECT * FROM targets WHERE id = ?", request.pop("target_id"))}


def release(
    db: Db, experiment: Row, status: ResultsStatus, at: datetime, *, only: Collection[str] | None = None
) -> None:
    """Publish results. The complete release replaces the preliminary one under the same result ids.

    `status` is `partial` or `all`; `only` names the sequences that have a result, None means all of them. The caller
    writes the experiment's `results_status`.
    """
    db.insert("packages", released(db, experiment, status, at, only=only))


def released(
    db: Db, experiment: Row, status: ResultsStatus, at: datetime, *, only: Collection[str] | None = None
) -> Row:
    """The row of a release, with all that it is measured from."""
    partial = status == ResultsStatus.PARTIAL
    request = _request(db, experiment, partial=partial)
    if only is not None:
        request["sequences"] = [entry for entry in request["sequences"] if entry["name"] in only]
    return {
        "id": secrets.token_urlsafe(18),
        "org_id": experiment["org_id"],
        "experiment_id": experiment["id"],
        "file_name": f"{experiment['code']}{'_preliminary' if partial else ''}.zip",
        "request": request,
        "released_at": at,
    }


def measure_released(db: Db, org_id: str, experiment_id: str | None = None) -> None:
    """Measure what was released and not looked at yet, of an organisation or of one experiment.

    To be called before results are read.
    """
    waiting = db.all(
        "SELECT id, experiment_id, request, released_at FROM packages WHERE org_id = ?"
        " AND (? IS NULL OR experiment_id = ?) AND NOT measured ORDER BY seq",
        org_id,
        experiment_id,
        experiment_id,
    )
    # Only the last release of an experiment can be read: it replaces the earlier ones.
    for package in {package["experiment_id"]: package for package in waiting}.values():
        for position, record in enumerate(measure_records(**_fields(db, package))):
            _publish(db, org_id, package, position, record)
    for package in waiting:
        db.run("UPDATE packages SET measured = 1 WHERE id = ?", package["id"])


def _publish(db: Db, org_id: str, package: Row, position: int, record: dict[str, Any]) -> None:
    experiment_id = package["experiment_id"]
    row = {
        "result_type": record["result_type"],
        "title": record["title"],
        "summary": record["summary"],
        "metadata": record["metadata"],
        "package_key": package["id"],
        "size_bytes": len(json.dumps(record)),
        "created_at": package["released_at"],
    }
    known = db.one("SELECT id FROM results WHERE experiment_id = ? AND position = ?", experiment_id, position)
    if known:
        db.update("results", known["id"], **row)
    else:
        owner = {"org_id": org_id, "experiment_id": experiment_id, "position": position}
        db.insert("results", {"id": str(uuid.uuid4()), **owner, **row})


def package(db: Db, key: str) -> tuple[str, bytes] | None:
    """File name and content of a data package, built at its first download; None for an unknown key."""
    row = db.one("SELECT * FROM packages WHERE id = ?", key)
    if row is None:
        return None
    if row["content"] is None:
        content = build_package(**_fields(db, row))
        db.update("packages", key, content=content)
        return row["file_name"], content
    return row["file_name"], row["content"]
