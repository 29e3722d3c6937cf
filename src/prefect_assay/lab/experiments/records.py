"""Results, updates, targets and the caller's identity: what is only read (contract 4.4 and 4.5)."""

from dataclasses import replace
from typing import Any, Final

from prefect_assay.lab.billing import specs
from prefect_assay.lab.kernel.refusals import Refusal, not_found
from prefect_assay.lab.kernel.store import Db, Row, load
from prefect_assay.lab.laboratory import measuring
from prefect_assay.lab.requests import lists
from prefect_assay.lab.requests.core import Answer, Call, Lab, experiment_of, owned, uuid_or_none
from prefect_assay.lab.requests.lists import Column, Listing, Sql

UPDATES: Final = Listing(
    source="updates JOIN experiments e ON e.id = updates.experiment_id",
    select="updates.*, e.code AS experiment_code",
    columns={
        "id": Column("updates.id", "uuid"),
        "experiment_id": Column("updates.experiment_id", "uuid"),
        "experiment_code": Column("e.code"),
        "name": Column("updates.name"),
        "type": Column("updates.type", "enum", frozenset({"status_change", "progress", "error"})),
        "timestamp": Column("updates.created_at", "timestamp"),
        "created_at": Column("updates.created_at", "timestamp"),
    },
    search=("updates.name", "e.code"),
    plain=("experiment_id", "type"),
)
UPDATES_IN_ORDER: Final = replace(UPDATES, plain=(), order="updates.seq")

RESULTS: Final = Listing(
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
    plain=("experiment_id", "result_type"),
)
RESULTS_IN_ORDER: Final = replace(RESULTS, plain=(), order="position, results.seq")

TARGETS: Final = Listing(
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
    search=("name", "catalog_number", "vendor_name", "uniprot_id"),
    plain=("name", "vendor_name", "vendor", "catalog_number"),
    order="targets.seq",
    by_org=False,
)


def _update(_db: Db, row: Row) -> dict[str, Any]:
    return {
        "id": row["id"],
        "experiment_id": row["experiment_id"],
        "experiment_code": row["experiment_code"],
        "name": row["name"],
        "timestamp": row["created_at"],
        "type": row["type"],
    }


def updates(call: Call) -> Answer:
    """GET /updates: the whole organisation's feed, newest first (contract 2.9)."""
    with call.lab.store.transaction() as db:
        return Answer(lists.page(db, UPDATES, call, render=_update))


def updates_of_experiment(call: Call) -> Answer:
    """GET /experiments/{id}/updates, oldest first (service shapes)."""
    with call.lab.store.transaction() as db:
        own = Sql("updates.experiment_id = ?", (experiment_of(db, call)["id"],))
        return Answer(lists.page(db, UPDATES_IN_ORDER, call, render=_update, only=(own,)))


def result(lab: Lab, row: Row) -> dict[str, Any]:
    """A whole result."""
    row = load(row, "summary", "metadata")
    return {
        "id": row["id"],
        "title": row["title"],
        "experiment_id": row["experiment_id"],
        "result_type": row["result_type"],
        "created_at": row["created_at"],
        "summary": row["summary"],
        "metadata": row["metadata"],
        "data_package_url": lab.portal_url("packages", row["package_key"]),
    }


def results(call: Call) -> Answer:
    """GET /results: summaries (contract 2.10). `size_bytes` is the size of the record."""
    wanted = ("id", "experiment_id", "result_type", "title", "created_at", "size_bytes")
    with call.lab.store.transaction() as db:
        measuring.measure_released(db, call.who.org_id)
        return Answer(
            lists.page(db, RESULTS, call, render=lambda _db, row: {name: row[name] for name in wanted})
        )


def results_of_experiment(call: Call) -> Answer:
    """GET /experiments/{id}/results: whole records; empty until something is released."""
    with call.lab.store.transaction() as db:
        experiment = experiment_of(db, call)
        measuring.measure_released(db, experiment["org_id"], experiment["id"])
        own = Sql("results.experiment_id = ?", (experiment["id"],))
        return Answer(
            lists.page(db, RESULTS_IN_ORDER, call, render=lambda _db, row: result(call.lab, row), only=(own,))
        )


def one_result(call: Call) -> Answer:
    """GET /results/{result_id}."""
    with call.lab.store.transaction() as db:
        measuring.measure_released(db, call.who.org_id)
        row = owned(db, call, "results", uuid_or_none(call.path["result_id"]), "result")
    return Answer(result(call.lab, row))


_FLAGS: Final = {"true": True, "1": True, "false": False, "0": False}


def _flag(call: Call, name: str) -> bool:
    text = call.query.get(name, "false").lower()
    if text not in _FLAGS:
        raise Refusal(400, f"{name} must be true or false, not {text!r}")
    return _FLAGS[text]


def _target(row: Row, *, detailed: bool) -> dict[str, Any]:
    row = load(row, "pricing", "details")
    names = ("id", "name", "vendor_name", "catalog_number", "url", "uniprot_id", "pricing")
    body = {name: row[name] for name in names}
    return body | {"details": row["details"]} if detailed else body


def targets(call: Call) -> Answer:
    """GET /targets (contract 4.4)."""
    detailed = _flag(call, "detailed")
    only = [Sql("org_id IS NULL OR org_id = ?", (call.who.org_id,))]
    if _flag(call, "selfservice_only"):
        only.append(Sql("pricing IS NOT NULL"))
    if not _flag(call, "show_conjugated"):
        only.append(Sql("NOT conjugated"))
    with call.lab.store.transaction() as db:
        return Answer(
            lists.page(
                db,
                TARGETS,
                call,
                render=lambda _db, row: _target(row, detailed=detailed),
                only=tuple(only),
            )
        )


def one_target(call: Call) -> Answer:
    """GET /targets/{target_id}."""
    with call.lab.store.transaction() as db:
        row = specs.target_row(db, uuid_or_none(call.path["target_id"]), call.who.org_id)
    if row is None:
        raise not_found("target")
    return Answer(_target(row, detailed=True))
