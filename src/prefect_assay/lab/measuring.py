"""Results of an experiment: measured when they are released, packaged when somebody downloads them."""

import json
import secrets
import uuid
from datetime import datetime
from typing import Any

from prefect_assay.lab.measure import build_package, measure_records
from prefect_assay.lab.store import Db, Row, load
from prefect_assay.models.vocabulary import REPLICATES_DEFAULT, ResultsStatus


def _request(db: Db, experiment: Row, *, partial: bool) -> dict[str, Any]:
    spec = json.loads(experiment["spec"])
    target = db.one("SELECT * FROM targets WHERE id = ?", spec.get("target_id"))
    sequences = db.all("SELECT * FROM sequences WHERE experiment_id = ? ORDER BY seq", experiment["id"])
    return {
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
                "metadata": load(row, "metadata")["metadata"],
            }
            for row in sequences
        ],
        "n_replicates": spec.get("n_replicates") or REPLICATES_DEFAULT,
        "antigen_concentrations": spec.get("antigen_concentrations"),
        "partial": partial,
    }


def release(db: Db, experiment: Row, status: ResultsStatus, at: datetime) -> None:
    """Measure and publish. The complete release replaces the preliminary one under the same result ids."""
    partial = status == ResultsStatus.PARTIAL
    request = _request(db, experiment, partial=partial)
    # A released package must not change when the experiment is edited later: keep what it is made from.
    key = secrets.token_urlsafe(18)
    db.insert(
        "packages",
        {
            "id": key,
            "experiment_id": experiment["id"],
            "file_name": f"{experiment['code']}{'_preliminary' if partial else ''}.zip",
            "request": request,
        },
    )
    for position, record in enumerate(measure_records(**request)):
        _publish(db, experiment, position, record, key, at)
    db.run("UPDATE experiments SET results_status = ? WHERE id = ?", status, experiment["id"])


def _publish(
    db: Db, experiment: Row, position: int, record: dict[str, Any], package_key: str, at: datetime
) -> None:
    row = {
        "result_type": record["result_type"],
        "title": record["title"],
        "summary": record["summary"],
        "metadata": record["metadata"],
        "package_key": package_key,
        "size_bytes": len(json.dumps(record)),
        "created_at": at,
    }
    known = db.one(
        "SELECT id FROM results WHERE experiment_id = ? AND position = ?", experiment["id"], position
    )
    if known:
        db.update("results", known["id"], **row)
    else:
        owner = {"org_id": experiment["org_id"], "experiment_id": experiment["id"], "position": position}
        db.insert("results", {"id": str(uuid.uuid4()), **owner, **row})


def package(db: Db, key: str) -> tuple[str, bytes] | None:
    """File name and content of a data package, built at its first download; None for an unknown key."""
    row = db.one("SELECT * FROM packages WHERE id = ?", key)
    if row is None:
        return None
    if row["content"] is None:
        content = build_package(**json.loads(row["request"]))
        db.update("packages", key, content=content)
        return row["file_name"], content
    return row["file_name"], row["content"]
