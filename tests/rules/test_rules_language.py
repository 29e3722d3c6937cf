"""Filter, sort and per-field tests (contract 4.1): what the client writes, the lab reads; what is wrong both refuse."""

import math
import uuid
from datetime import date, datetime, timedelta, timezone
from operator import attrgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_lab.requests.filters import parse_expression, parse_sort
from lab_support.core import spec
from prefect_assay.service.client import filters as f
from prefect_assay.service.client import parameters as p
from prefect_assay.service.models.vocabulary import ExperimentStatus
from support.lab.organisations import organisation
from support.rules.register import client_holds

METHOD = f.at("experiment_spec", "method")
REPLICATES = f.at("experiment_spec", "n_replicates")
NOON = datetime(2000, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
# The client's expression, the text that it writes, and how many of the three experiments the lab finds by it.
FILTERS = [
    (f.eq("name", "alpha"), "eq(name,alpha)", 1),
    (f.eq("status", ExperimentStatus.DRAFT), "eq(status,draft)", 3),
    (f.neq("name", "a b"), 'neq(name,"a b")', 3),
    (f.gt("created_at", NOON), "gt(created_at,2000-01-01T10:00:00Z)", 3),
    (f.lt("created_at", date(2000, 1, 1)), "lt(created_at,2000-01-01)", 0),
    (f.gte("name", "beta"), "gte(name,beta)", 2),
    (f.lte("name", "beta"), "lte(name,beta)", 2),
    (f.contains("name", "ALPH"), "contains(name,ALPH)", 1),
    (f.between("name", "alpha", "beta"), "between(name,alpha,beta)", 2),
    (f.in_("experiment_type", ["screening", "expression"]), "in(experiment_type,screening,expression)", 1),
    (f.eq("name", "alpha") & f.eq("status", "draft"), "and(eq(name,alpha),eq(status,draft))", 1),
    (f.and_(f.eq("name", "alpha")), "eq(name,alpha)", 1),
    (f.eq("name", "alpha") | ~f.eq("name", "beta"), "or(eq(name,alpha),not(eq(name,beta)))", 2),
    (f.is_null(METHOD), "is_null(at(experiment_spec,method))", 1),
    (f.is_not_null(METHOD), "is_not_null(at(experiment_spec,method))", 2),
    (f.eq(METHOD, "spr"), "eq(at(experiment_spec,method),spr)", 1),
    (f.eq(f.at(f.at("experiment_spec", "a b"), "c"), "x"), 'eq(at(at(experiment_spec,"a b"),c),x)', 0),
    (f.eq(f.as_float(REPLICATES), 2.0), "eq(float(at(experiment_spec,n_replicates)),2.0)", 1),
    (f.eq(f.as_int(REPLICATES), 2), "eq(int(at(experiment_spec,n_replicates)),2)", 1),
    (f.contains(f.as_text("status"), "raf"), "contains(text(status),raf)", 3),
    (f.eq(f.as_text("name"), "1"), 'eq(text(name),"1")', 0),
    (f.gt(f.as_timestamp(f.as_text("created_at")), date(2000, 1, 1)), "gt(timestamp(text(created_at)),2000-01-01)", 3),
    (f.gt(f.as_date("created_at"), date(2000, 1, 1)), "gt(date(created_at),2000-01-01)", 3),
    (f.eq("name", "true"), 'eq(name,"true")', 0),
    (f.eq("name", 'say "hi" \\ bye'), 'eq(name,"say \\"hi\\" \\\\ bye")', 0),
    (f.eq("name", "a,b)"), 'eq(name,"a,b)")', 0),
    (f.eq("name", ""), 'eq(name,"")', 0),
]  # fmt: skip
SORTS = [
    ("desc(field)", f.desc("name"), "gamma"),
    ("asc(field)", f.asc("name"), "alpha"),
    ("desc(cast)", f.desc(f.as_text("name")), "gamma"),
    ("asc(at)", f"{f.asc(METHOD)},{f.asc('name')}", "alpha"),
    ("-field", "-name", "gamma"),
    ("+field", "+name", "alpha"),
    ("field", "name", "alpha"),
    ("field:asc", "name:asc", "alpha"),
    ("field:desc", "name:desc", "gamma"),
    ("several", "experiment_type,-name", "alpha"),
]
TESTS = [("equ", p.equ, 0), ("geq", p.geq, 3), ("gtr", p.gtr, 3), ("leq", p.leq, 0), ("lss", p.lss, 0)]


@pytest.fixture(scope="module")
def three(lab):
    with organisation(lab) as org:
        org.made(spec(n_replicates=2), name="alpha")
        org.made(spec(experiment_type="screening", method="spr"), name="beta")
        org.made(spec(experiment_type="thermostability", method=None, target_id=None), name="gamma")
        yield org


@pytest.mark.parametrize(("built", "text", "total"), FILTERS, ids=[row[1] for row in FILTERS])
def test_every_operator(three, built, text, total):
    assert str(built) == text
    assert three.client.experiments.list(filter=built).total == total


@pytest.mark.parametrize(("form", "sort", "first"), SORTS, ids=[row[0] for row in SORTS])
def test_every_form_of_sort(three, form, sort, first):
    assert three.client.experiments.list(sort=sort).items[0].name == first
    assert three.http.get("/experiments", params={"sort": str(sort)}).json()["items"][0]["name"] == first


@pytest.mark.parametrize(("word", "build", "total"), TESTS, ids=[row[0] for row in TESTS])
@pytest.mark.parametrize("method", ["experiments.list", "quotes.list", "results.list"])
def test_every_test_of_a_field(three, method, word, build, total):
    where = [build("created_at", "2000-01-01")]
    assert where[0].parameter == f"{word}(created_at)"
    assert attrgetter(method)(three.client)(where=where).total == (
        total if method == "experiments.list" else 0
    )


def test_search_and_plain_status(three):
    assert three.client.experiments.list(search="ALPH").total == 1
    assert three.client.experiments.list(search="%").total == 0
    assert three.client.experiments.list(status="draft").total == 3
    assert three.client.experiments.list(status="done").total == 0
    code = three.client.experiments.list().items[0].code
    assert three.client.experiments.list(search=code).total == 1


@pytest.mark.parametrize("condition", [f.eq("name", "alpha"), "eq(name,alpha)"])
def test_a_status_of_results_joins_the_filter(three, condition):
    for results_status, total in (("none", 1), ("all", 0)):
        narrowed = {"filter": condition, "results_status": results_status}
        assert three.client.experiments.list(**narrowed).total == total
        assert len([*three.client.experiments.iterate(**narrowed, page_size=2)]) == total
    assert three.client.experiments.list(results_status="none").total == 3


@client_holds("4.1.filter")
@pytest.mark.parametrize(
    "build",
    [
        *(lambda _: f.eq("na me", "x"), lambda _: f.eq("a,b", "x"), lambda _: f.eq("", "x")),
        *(lambda _: f.eq("a) or (b", "x"), lambda _: f.in_("name", []), lambda _: f.in_("a", "abc")),
        *(
            lambda _: f.and_(),
            lambda _: f.or_(),
            lambda _: f.sorted_by(),
            lambda _: f.sorted_by(*[f.asc("a")] * 9),
        ),
        *(lambda _: f.gt("a", math.nan), lambda _: f.gt("a", math.inf), lambda _: p.lss("a", math.nan)),
        lambda _: f.gt("a", datetime(2026, 1, 1)),  # noqa: DTZ001 - that is the point
        *(
            lambda _: p.equ("a b", 1),
            lambda client: client.experiments.list(where=[p.equ("a", 1), p.equ("a", 2)]),
        ),
    ],
)
def test_the_client_builds_nothing_that_cannot_be_read(org, build):
    org.refuses(build)


@given(
    st.lists(st.text(), min_size=1, max_size=5), st.uuids(), st.floats(allow_nan=False, allow_infinity=False)
)
def test_the_lab_reads_any_value_as_it_was(values, key, number):
    """Values never run into each other."""
    tests = (f.in_("a", values), f.eq("id", key), f.eq(f.at("m", values[0]), "x"), f.eq("a", number))
    members, same, path, float_ = parse_expression(str(f.and_(*tests))).arguments
    assert [argument.text for argument in members.arguments] == ["a", *values]
    assert uuid.UUID(same.arguments[1].text) == key
    assert path.arguments[0].arguments[1].text == values[0]
    assert float(float_.arguments[1].text) == number


def test_sorts_are_read_by_the_lab():
    text = f.sorted_by(f.desc("created_at"), f.asc(f.as_float(f.at("m", "x y"))))
    assert text == 'desc(created_at),asc(float(at(m,"x y")))'
    assert [column.name for column in parse_sort(text)] == ["desc", "asc"]
