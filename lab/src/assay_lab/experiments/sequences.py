"""Sequences of experiments: adding and reading them (contract 4.3)."""

import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import count
from typing import Any, Final

from assay_lab.billing import specs
from assay_lab.kernel.refusals import Refusal, not_found
from assay_lab.kernel.store import Db, Row, decode_row
from assay_lab.measure.assays import ASSAY_TYPES
from assay_lab.requests import lists, validation
from assay_lab.requests.core import Answer, Call, experiment_of, require_owned, uuid_or_none
from assay_lab.requests.lists import Column, Listing, Sql
from assay_lab.requests.schemas import AddSequences
from assay_lab.requests.validation import Entry, Violation
from assay_lab.vocabulary import (
    CHAIN_SEPARATOR,
    ExperimentStatus,
)

_PREVIEW: Final = 50

LISTING: Final = Listing(
    source="sequences JOIN experiments e ON e.id = sequences.experiment_id",
    select="sequences.*, e.code AS experiment_code",
    columns={
        "id": Column("sequences.id", "uuid"),
        "name": Column("sequences.name"),
        "length": Column(f"length(replace(aa_string, '{CHAIN_SEPARATOR}', ''))", "int"),
        "experiment_id": Column("sequences.experiment_id", "uuid"),
        "experiment_code": Column("e.code"),
        "is_control": Column("is_control", "bool"),
        "metadata": Column("metadata", "json"),
        "created_at": Column("sequences.created_at", "timestamp"),
    },
    search=("sequences.name", "e.code"),
    plain=("experiment_id",),
    by_org=False,
)
IN_ORDER: Final = replace(LISTING, plain=(), order="sequences.seq")


def insert_sequences(db: Db, experiment_id: str, entries: Iterable[Entry], created_at: datetime) -> list[str]:
    """Store sequences in upper case; their ids."""
    rows = [
        {
            "id": str(uuid.uuid4()),
            "experiment_id": experiment_id,
            "name": entry.name,
            "aa_string": entry.aa_string.upper(),
            "is_control": int(entry.control),
            # Free-form (contract 2.4): a bare string or number must come back as one.
            "metadata": None if entry.metadata is None else json.dumps(entry.metadata),
            "created_at": created_at,
        }
        for entry in entries
    ]
    db.insert_all("sequences", rows)
    return [str(row["id"]) for row in rows]


def read_entries(raw: Any, earlier: Sequence[Entry] = ()) -> list[Entry]:
    """The readable entries of a raw add or replacement list; what else it holds does not match the schema.

    Those without a name get numbers that follow the earlier ones: only the schema of a replacement list requires names.
    """
    rows = {
        index: row
        for index, row in enumerate(raw if isinstance(raw, list) else ())
        if isinstance(row, dict) and isinstance(row.get("aa_string"), str)
    }
    taken = {entry.name for entry in earlier} | {str(row.get("name")) for row in rows.values()}
    names = (name for number in count(len(earlier) + 1) if (name := f"sequence {number}") not in taken)
    return [
        Entry(
            place=f"sequences.{index}",
            name=row["name"] if isinstance(row.get("name"), str) else next(names),
            aa_string=row["aa_string"],
            control=row.get("control") is True,
            metadata=row.get("metadata"),
        )
        for index, row in rows.items()
    ]


def add_sequences(call: Call) -> Answer:
    """POST /sequences: only to a draft (contract 4.3)."""
    raw = call.json()
    body, violations = validation.read_shape(AddSequences, raw)
    if body is None:
        entries = read_entries(raw.get("sequences") if isinstance(raw, dict) else None)
        validation.refuse_violations([*violations, *validation.sequence_violations(entries)])
        raise Refusal(400, "the body does not match its schema")
    with call.lab.store.transaction() as db:
        experiment = require_owned(db, call, "experiments", body.experiment_code, "experiment", by="code")
        if experiment["status"] != ExperimentStatus.DRAFT:
            raise Refusal(
                409, f"the experiment is {experiment['status']}; sequences can be added to a draft only"
            )
        earlier = specs.stored_entries(db, experiment)
        entries = read_entries(raw["sequences"], earlier)
        violations = validation.sequence_violations(entries, earlier=earlier)
        number = len(earlier) + len(entries)
        # Submitting checks for the step: adding one at a time must stay possible.
        kind = ASSAY_TYPES[experiment["experiment_type"]]
        if kind.sequence_counts and number > kind.sequence_counts[1]:
            text = f"sequences: {kind.experiment_type} takes at most {kind.sequence_counts[1]}, not {number}"
            violations.append(Violation(text))
        validation.refuse_violations(violations)
        ids = insert_sequences(db, experiment["id"], entries, call.now())
    whose = {"experiment_code": experiment["code"], "experiment_id": experiment["id"]}
    return Answer({"added_count": len(ids), **whose, "sequence_ids": ids}, 201)


def list_sequences(call: Call) -> Answer:
    """GET /sequences."""
    return lists.make_page(call, LISTING, _view_item, only=(Sql("e.org_id = ?", (call.who.org_id,)),))


def of_experiment(call: Call) -> Answer:
    """GET /experiments/{id}/sequences, in the order they were given."""
    with call.lab.store.transaction() as db:
        condition = Sql("sequences.experiment_id = ?", (experiment_of(db, call)["id"],))
        return lists.make_page(call, IN_ORDER, _view_item, only=(condition,))


def get_sequence(call: Call) -> Answer:
    """GET /sequences/{sequence_id}."""
    with call.lab.store.transaction() as db:
        row = db.one(
            "SELECT s.*, e.code AS experiment_code, e.status AS experiment_status"
            " FROM sequences s JOIN experiments e ON e.id = s.experiment_id WHERE s.id = ? AND e.org_id = ?",
            uuid_or_none(call.path["sequence_id"]),
            call.who.org_id,
        )
    if row is None:
        raise not_found("sequence")
    experiment = {name: row[name] for name in ("experiment_id", "experiment_code", "experiment_status")}
    return Answer(
        {
            **_view_common(row),
            "aa_string": row["aa_string"],
            "metadata": decode_row(row, "metadata")["metadata"],
            "experiment": experiment,
        }
    )


def _view_item(row: Row) -> dict[str, Any]:
    return {
        **_view_common(row),
        "aa_preview": row["aa_string"][:_PREVIEW],
        "experiment_id": row["experiment_id"],
        "experiment_code": row["experiment_code"],
    }


def _view_common(row: Row) -> dict[str, Any]:
    return {
        "id": row["id"],
        "name": row["name"],
        "length": len(row["aa_string"].replace(CHAIN_SEPARATOR, "")),
        "is_control": bool(row["is_control"]),
        "created_at": row["created_at"],
    }
