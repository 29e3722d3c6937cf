"""A few hundred broken inputs for every parser of foreign text; `make fuzz` tries as many as the time allows."""

import sqlite3

import pytest

from assay_lab.experiments import experiments
from support.fuzz import parsers as parser_fuzz
from support.fuzz.filters import LISTINGS, FilterFuzz

TRIES = 400


@pytest.mark.parametrize("kind", parser_fuzz.ALL, ids=lambda kind: kind.__name__)
def test_no_exception_but_the_documented_ones(kind):
    fuzz = kind(seed=11)
    for _ in range(TRIES):
        fuzz.one()
    getattr(fuzz, "close", lambda: None)()


def test_no_query_reads_what_is_not_its_own():
    fuzz = FilterFuzz(seed=12)
    for _ in range(3 * TRIES):
        fuzz.one()
    assert fuzz.accepted > TRIES / 10  # it does get through to the database
    fuzz.close()


def test_the_watch_sees_another_table():
    fuzz = FilterFuzz(seed=13)
    with fuzz._watched({"experiments"}), pytest.raises(sqlite3.DatabaseError):
        fuzz._connection.execute("SELECT * FROM experiments WHERE id IN (SELECT revocation_id FROM tokens)")
    assert fuzz._touched
    with fuzz._watched({"experiments"}), pytest.raises(sqlite3.DatabaseError):
        fuzz._connection.execute("DELETE FROM experiments")
    assert LISTINGS["experiments"] is experiments.LISTING
    fuzz.close()


def statement(fuzz, depth):
    """How long the longest statement is for a way of this many steps into a JSON field."""
    field = "experiment_spec"
    for step in range(depth):
        field = f"at({field},k{step})"
    statements = []
    fuzz._connection.set_trace_callback(statements.append)
    page = fuzz._page(experiments.LISTING, {"filter": f"is_null({field})"})
    fuzz._connection.set_trace_callback(None)
    assert page["total"] == fuzz._own["experiments"]
    return max(map(len, statements))


def test_a_way_into_json_does_not_grow_the_statement():
    fuzz = FilterFuzz(seed=14)
    assert statement(fuzz, 15) - statement(fuzz, 1) < 14 * len('."k10"') * 2
    fuzz.close()
