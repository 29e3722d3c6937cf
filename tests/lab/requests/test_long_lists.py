"""Long lists: every page and total is what a plain search through the rows gives, and indexes carry the search."""

import json
from datetime import timedelta
from uuid import UUID

import pytest

from prefect_assay.lab.kernel.store import Db
from prefect_assay.models.vocabulary import ExperimentStatus
from support.lab.core import EPOCH, get, lab_core, order

ROWS = 1200
TYPES = ("affinity", "screening", "thermostability")


def _rows(db, first):
    row = db.one("SELECT * FROM experiments WHERE id = ?", first)
    for number in range(ROWS):
        shown = json.loads(row["shown_spec"]) | {
            "experiment_type": TYPES[number % 3],
            "n_replicates": number % 4,
        }
        shown["method"] = None if number % 5 else "bli"
        yield row | {
            "seq": None,
            "id": str(UUID(int=number)),
            "code": f"LAB-002-{number}",
            "portal_key": str(number),
            "name": None if number % 7 == 0 else f"design {number % 100}",
            "status": list(ExperimentStatus)[number % 10],
            "experiment_type": TYPES[number % 3],
            "shown_spec": shown,
            "created_at": EPOCH + timedelta(hours=number // 4),
        }


@pytest.fixture(scope="module")
def core():
    made = lab_core()
    first = order(made, name="the first").body["experiment_id"]
    with made.lab.store.transaction() as db:
        for row in list(_rows(db, first)):
            db.insert("experiments", row)
    yield made
    made.close()


@pytest.fixture(scope="module")
def rows(core):
    """All rows as the lab keeps them, newest first, their specification decoded."""
    with core.lab.store.transaction() as db:
        found = db.all("SELECT * FROM experiments ORDER BY created_at DESC, seq DESC")
    return [row | {"shown": json.loads(row["shown_spec"])} for row in found]


def _by_status_down_then_name(row):
    name = row["name"]
    return [-ord(letter) for letter in row["status"]] + [0], name is None, name or "", row["seq"]


QUERIES = {
    "plain": ({}, lambda row: True, None),
    "status": ({"status": "done"}, lambda row: row["status"] == "done", None),
    "none": ({"search": "nowhere"}, lambda row: False, None),
    "few": ({"search": "DESIGN 77"}, lambda row: row["name"] == "design 77", None),
    "many": ({"filter": "contains(code,1)"}, lambda row: "1" in row["code"], None),
    "method": (
        {"filter": "eq(at(experiment_spec,method),bli)"},
        lambda row: row["shown"]["method"] == "bli",
        None,
    ),
    "no method": (
        {"filter": "is_null(at(experiment_spec,method))"},
        lambda row: row["shown"]["method"] is None,
        None,
    ),
    "type": (
        {"filter": "in(at(experiment_spec,experiment_type),affinity,screening)"},
        lambda row: row["experiment_type"] in ("affinity", "screening"),
        None,
    ),
    "not of a null": (
        {"filter": "not(eq(at(experiment_spec,method),biacore))"},
        lambda row: row["shown"]["method"] == "bli",
        None,
    ),
    "number in text": ({"filter": "eq(at(experiment_spec,method),12)"}, lambda row: False, None),
    "replicates": (
        {"filter": "gte(at(experiment_spec,n_replicates),2)"},
        lambda row: row["shown"]["n_replicates"] >= 2,
        None,
    ),
    "status and time": (
        {"filter": "and(in(status,done,draft),gte(created_at,2026-03-08T12:00:00Z))"},
        lambda row: row["status"] in ("done", "draft") and row["created_at"] >= "2026-03-08T12",
        None,
    ),
    "day": (
        {"filter": "lt(date(created_at),2026-03-05)"},
        lambda row: row["created_at"][:10] < "2026-03-05",
        None,
    ),
    "sorted": ({"sort": "-status,name"}, lambda row: True, _by_status_down_then_name),
    "sorted by day": (
        {"sort": "asc(date(created_at)),-code", "filter": "eq(results_status,none)"},
        lambda row: True,
        "days",
    ),
}


def _expected(rows, condition, key):
    found = [row for row in rows if condition(row)]
    if key == "days":  # two passes: text cannot be turned round in a key
        found = sorted(
            sorted(found, key=lambda row: row["code"], reverse=True), key=lambda r: r["created_at"][:10]
        )
    elif key:
        found = sorted(found, key=key)
    return [row["id"] for row in found]


@pytest.mark.parametrize("name", QUERIES)
def test_pages_and_totals_are_those_of_a_plain_search(core, rows, name):
    query, condition, key = QUERIES[name]
    expected = _expected(rows, condition, key)
    edges = {
        0,
        1,
        100,
        599,
        600,
        601,
        700,
        701,
        len(expected) - 1,
        len(expected),
        len(expected) + 1,
        ROWS * 9,
    }
    for offset in sorted(edge for edge in edges if edge >= 0):
        for limit in (1, 100):
            page = get(core, "/experiments", **query, limit=str(limit), offset=str(offset))
            assert [item["id"] for item in page["items"]] == expected[offset : offset + limit], (
                offset,
                limit,
            )
            assert page["total"] == len(expected), (offset, limit)


def test_a_total_is_never_that_of_an_earlier_moment(core):
    before = get(core, "/experiments")["total"]
    order(core, name="one more")
    assert get(core, "/experiments")["total"] == before + 1


def _searches(core, monkeypatch, **query):
    """How SQLite carries out the list's own statements on long tables."""
    plans, column = [], Db.column

    def explained(self, sql, *values):
        plans.extend(row["detail"] for row in self.all(f"EXPLAIN QUERY PLAN {sql}", *values))
        return column(self, sql, *values)

    monkeypatch.setattr(Db, "column", explained)
    get(core, "/experiments", **query)
    return plans


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ({}, "COVERING INDEX experiments_by_org (org_id=?)"),
        ({"search": "77"}, "COVERING INDEX experiments_by_org (org_id=?)"),
        ({"filter": "contains(name,77)"}, "COVERING INDEX experiments_by_org (org_id=?)"),
        ({"status": "done"}, "COVERING INDEX experiments_by_status (org_id=? AND status=?)"),
        (
            {"filter": "and(eq(status,done),gte(created_at,2026-03-02T12:00:00Z))"},
            "COVERING INDEX experiments_by_status (org_id=? AND status=? AND created_at>?)",
        ),
        ({"sort": "-status,name"}, "COVERING INDEX experiments_by_status (org_id=?)"),
        (
            {"filter": "eq(at(experiment_spec,experiment_type),affinity)"},
            "experiments_by_type (org_id=? AND <expr>=?)",
        ),
    ],
)
def test_what_is_often_asked_has_an_index(core, monkeypatch, query, index):
    plans = _searches(core, monkeypatch, **query)
    searches = [plan for plan in plans if "experiments" in plan]
    assert searches[0].endswith(index), plans  # the page; its total is counted by whichever is the shortest
    assert all("USING COVERING INDEX" in plan or plan.endswith(index) for plan in searches), plans
    assert "USE TEMP B-TREE FOR ORDER BY" not in plans, plans


def test_what_is_queued_for_an_experiment_is_found_without_reading_the_queue(core):
    with core.lab.store.transaction() as db:
        for sql in (
            "SELECT * FROM due WHERE experiment_id = ? AND kind = ?",
            "DELETE FROM due WHERE experiment_id = ?",
        ):
            (plan,) = db.all(f"EXPLAIN QUERY PLAN {sql}", *["x"] * sql.count("?"))
            assert "due_by_experiment" in plan["detail"]
