"""Fills a lab with many experiments at once, for load tests: no requests, one transaction."""

import secrets
import uuid
from datetime import datetime, timedelta
from typing import Any, Final

from prefect_assay.lab.billing import specs
from prefect_assay.lab.experiments import orders, state_machine
from prefect_assay.lab.kernel.store import Db, load
from prefect_assay.lab.requests.core import Lab
from prefect_assay.models.vocabulary import (
    ExperimentStatus,
    ExperimentType,
    Method,
    ResultsStatus,
)

_LETTERS: Final = "ACDEFGHIKLMNPQRSTVWY"


def fill(lab: Lab, db: Db, org_id: str, *, experiments: int, stage: str, sequences: int) -> list[str]:
    """Make affinity experiments a second of lab time apart up to now, the oldest first; their ids.

    `stage` is `draft`, or `submitted` or `ordered`, which take the state machine's own way.
    """
    now = lab.clock.now(org_id)
    org = load(db.one("SELECT * FROM organizations WHERE id = ?", org_id) or {}, "payment_policy")
    db.run("UPDATE organizations SET experiments = experiments + ? WHERE id = ?", experiments, org_id)
    target = db.one("SELECT id FROM targets WHERE pricing LIKE '%per_sequence%' ORDER BY seq LIMIT 1") or {}
    spec = {
        "experiment_type": ExperimentType.AFFINITY,
        "method": Method.BLI,
        "target_id": target.get("id"),
    }
    shown = specs.columns(spec, specs.target_row(db, spec["target_id"], org_id))
    ids: list[str] = []
    for place in range(experiments):
        number = org["experiments"] + place + 1
        at = now - timedelta(seconds=experiments - 1 - place)
        row = {
            "id": str(uuid.uuid4()),
            "org_id": org_id,
            "code": orders.code(org, number),
            "name": f"filled in {number}",
            "status": ExperimentStatus.DRAFT,
            "results_status": ResultsStatus.NONE,
            "experiment_type": ExperimentType.AFFINITY,
            **shown,
            "payment_method": org["payment_policy"][0],
            "created_at": at,
            "portal_key": secrets.token_urlsafe(18),
        }
        db.insert("experiments", row)
        _add_sequences(db, row["id"], number, sequences, at)
        ids.append(row["id"])
    if stage != "draft":
        for experiment_id in ids:
            _move_on(lab, db, experiment_id, now, ordered=stage == "ordered")
    return ids


def _add_sequences(db: Db, experiment_id: str, number: int, count: int, at: datetime) -> None:
    for place in range(count):
        letters = f"{number}{place:02d}"
        db.insert(
            "sequences",
            {
                "id": str(uuid.uuid4()),
                "experiment_id": experiment_id,
                "name": f"design_{place + 1}",
                # Different everywhere, so that no two are duplicates.
                "aa_string": "MKT" + "".join(_LETTERS[int(digit)] for digit in letters),
                "is_control": 0,
                "created_at": at,
            },
        )


def _move_on(lab: Lab, db: Db, experiment_id: str, at: datetime, *, ordered: bool) -> None:
    experiment: dict[str, Any] = db.one("SELECT * FROM experiments WHERE id = ?", experiment_id) or {}
    if not ordered:
        state_machine.submitted(lab, db, experiment, at)
        return
    orders.accept_at_once(lab, db, experiment, at)
