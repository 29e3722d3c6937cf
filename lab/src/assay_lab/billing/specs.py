"""The stored specification of an experiment: its columns, its price, and its form in the detail record."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from assay_lab.billing import pricing
from assay_lab.kernel.refusals import accept_integral
from assay_lab.kernel.store import Db, Row, decode_row
from assay_lab.measure.assays import ASSAY_TYPES
from assay_lab.requests.schemas import ExperimentSpec
from assay_lab.requests.validation import Entry

FIELDS = tuple(name for name in ExperimentSpec.model_fields if name != "sequences")


def store_spec(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a raw specification that are set, without its sequences; ids in lower case, 3.0 as 3."""
    fields = {name: raw[name] for name in FIELDS if raw.get(name) is not None}
    if "n_replicates" in fields:
        fields["n_replicates"] = accept_integral(fields["n_replicates"])
    if isinstance(fields.get("target_id"), str):
        fields["target_id"] = fields["target_id"].lower()
    return fields


def target_row(db: Db, target_id: str | None, org_id: str) -> Row | None:
    """The target in the organization's catalog, or None."""
    return db.one(
        "SELECT * FROM targets WHERE id = ? AND (org_id IS NULL OR org_id = ?)",
        target_id.lower() if target_id else None,
        org_id,
    )


def stored_entries(db: Db, experiment: Row) -> list[Entry]:
    """The experiment's sequences in order."""
    rows = db.all("SELECT * FROM sequences WHERE experiment_id = ? ORDER BY seq", experiment["id"])
    return [
        Entry(
            f"sequence {row['name']}",
            row["name"],
            row["aa_string"],
            bool(row["is_control"]),
            decode_row(row, "metadata")["metadata"],
        )
        for row in rows
    ]


def count_sequences(db: Db, experiment: Row) -> int:
    """How many sequences the experiment has."""
    return int(db.column("SELECT count(*) FROM sequences WHERE experiment_id = ?", experiment["id"])[0])


def price_of(db: Db, experiment: Row) -> pricing.Price:
    """The price of the experiment in its present form."""
    spec = json.loads(experiment["spec"])
    target = target_row(db, spec.get("target_id"), experiment["org_id"])
    return pricing.price_spec(spec, count_sequences(db, experiment), target)


def make_columns(spec: Mapping[str, Any], target: Row | None) -> dict[str, Any]:
    """The columns that hold a specification: as it is stored, and as filters see it."""
    return {
        "spec": dict(spec),
        # Stored, because building it for every row of a long list takes a second.
        "shown_spec": {"target_id": spec.get("target_id"), **_without_sequences(spec, target)},
    }


def view_spec(spec: Mapping[str, Any], target: Row | None, entries: Iterable[Entry]) -> dict[str, Any]:
    """`experiment_spec` of the detail record, with the resolved target (service shapes, Experiments)."""
    body = _without_sequences(spec, target)
    if target and (residues := (decode_row(target, "details")["details"] or {}).get("sequence")):
        body["target"]["sequence"] = residues
    body["sequences"] = {
        entry.name: {"aa_string": entry.aa_string, "control": entry.control, "metadata": entry.metadata}
        for entry in entries
    }
    return body


def _without_sequences(spec: Mapping[str, Any], target: Row | None) -> dict[str, Any]:
    shown = {**ASSAY_TYPES[spec["experiment_type"]].takes, **spec}
    body: dict[str, Any] = {}
    for name in FIELDS:
        if name == "target_id":
            if target is not None:
                body["target"] = {
                    "name": target["name"],
                    "target_catalog_id": target["id"],
                    "supplier_url": target["url"],
                }
        elif shown.get(name) is not None:
            body[name] = [*shown[name]] if isinstance(shown[name], tuple) else shown[name]
    return body
