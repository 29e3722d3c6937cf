"""Filter, sort and per-field tests over HTTP (contract 4.1): what the client builds, the lab reads, and what is wrong it refuses."""

from operator import attrgetter

import pytest

from lab_support.core import spec
from prefect_assay.service.client import filters as f
from prefect_assay.service.client import parameters as p
from support.lab.organisations import organisation, refused
from support.rules.register import client_holds, lab_holds

METHOD = f.at("experiment_spec", "method")
REPLICATES = f.at("experiment_spec", "n_replicates")
# Operator, the client's expression, the same by hand, and how many of the three experiments it finds.
FILTERS = [
    ("eq", f.eq("name", "alpha"), "eq(name,alpha)", 1),
    ("neq", f.neq("name", "alpha"), 'neq( name , "alpha" )', 2),
    ("gt", f.gt("created_at", "2000-01-01"), "gt(created_at,2000-01-01)", 3),
    ("lt", f.lt("created_at", "2000-01-01"), "lt(created_at,2000-01-01T00:00:00Z)", 0),
    ("gte", f.gte("name", "beta"), "gte(name,beta)", 2),
    ("lte", f.lte("name", "beta"), "lte(name,beta)", 2),
    ("contains", f.contains("name", "ALPH"), "contains(name,ALPH)", 1),
    ("between", f.between("name", "alpha", "beta"), "between(name,alpha,beta)", 2),
    ("in", f.in_("experiment_type", ["screening", "expression"]), "in(experiment_type,screening,expression)", 1),
    ("and", f.eq("name", "alpha") & f.eq("status", "draft"), "and(eq(name,alpha),eq(status,Draft))", 1),
    ("or", f.eq("name", "alpha") | f.eq("name", "beta"), "or(eq(name,alpha),eq(name,beta))", 2),
    ("not", ~f.eq("name", "alpha"), "not(eq(name,alpha))", 2),
    ("is_null", f.is_null(METHOD), "is_null(at(experiment_spec,method))", 1),
    ("is_not_null", f.is_not_null(METHOD), "is_not_null(at(experiment_spec,method))", 2),
    ("at", f.eq(METHOD, "spr"), 'eq(at(experiment_spec,"method"),spr)', 1),
    ("float", f.eq(f.as_float(REPLICATES), 2.0), "eq(float(at(experiment_spec,n_replicates)),2.0)", 1),
    ("int", f.eq(f.as_int(REPLICATES), 2), "eq(int(at(experiment_spec,n_replicates)),2)", 1),
    ("text", f.contains(f.as_text("status"), "raf"), "contains(text(status),raf)", 3),
    ("timestamp", f.gt(f.as_timestamp(f.as_text("created_at")), "2000-01-01"), "gt(timestamp(text(created_at)),2000-01-01)", 3),
    ("date", f.gt(f.as_date("created_at"), "2000-01-01"), "gt(date(created_at),2000-01-01)", 3),
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


@pytest.mark.parametrize(("operator", "built", "by_hand", "found"), FILTERS, ids=[row[0] for row in FILTERS])
def test_every_operator(three, operator, built, by_hand, found):
    assert f"{operator}(" in str(built)
    assert three.client.experiments.list(filter=built).total == found
    assert three.http.get("/experiments", params={"filter": by_hand}).json()["total"] == found


@pytest.mark.parametrize(("form", "sort", "first"), SORTS, ids=[row[0] for row in SORTS])
def test_every_form_of_sort(three, form, sort, first):
    assert three.client.experiments.list(sort=sort).items[0].name == first
    assert three.http.get("/experiments", params={"sort": str(sort)}).json()["items"][0]["name"] == first


@pytest.mark.parametrize(("word", "build", "found"), TESTS, ids=[row[0] for row in TESTS])
@pytest.mark.parametrize("method", ["experiments.list", "quotes.list", "results.list"])
def test_every_test_of_a_field(three, method, word, build, found):
    where = [build("created_at", "2000-01-01")]
    assert where[0].parameter == f"{word}(created_at)"
    assert attrgetter(method)(three.client)(where=where).total == (
        found if method == "experiments.list" else 0
    )


def test_search_and_plain_status(three):
    assert three.client.experiments.list(search="ALPH").total == 1
    assert three.client.experiments.list(search="%").total == 0
    assert three.client.experiments.list(status="draft").total == 3
    assert three.client.experiments.list(status="done").total == 0
    code = three.client.experiments.list().items[0].code
    assert three.client.experiments.list(search=code).total == 1


@client_holds("4.1.filter")
def test_the_client_builds_nothing_that_cannot_be_read(org):
    for build in (
        lambda _: f.eq("na me", "x"),
        lambda _: f.in_("name", []),
        lambda _: f.and_(),
        lambda _: f.gt("created_at", float("nan")),
        lambda _: f.sorted_by(),
    ):
        org.refuses(build)


@lab_holds("4.1.filter")
@pytest.mark.parametrize(
    "text",
    ["eq(name)", "eq(nothing,1)", "like(name,x)", "name", "eq(name,x", "eq(name,x))", "in(name)", "and()", "not(a,b)", "eq(status,happy)",
     "gt(created_at,soon)", "between(created_at,2026-01-01)", "at(name,x)", "eq(at(name,x),1)", "is_null()", "eq(int(name),x)", '"', "(" * 50,
     'eq(at(experiment_spec,"a\0b"),1)', 'eq(at(experiment_spec,"a\\"b"),1)'],
)  # fmt: skip
def test_the_lab_reads_nothing_that_is_no_filter(three, text):
    refused(three.http.get("/experiments", params={"filter": text}), 400, "filter")
    refused(three.http.get("/experiments", params={"sort": f"{text},desc("}), 400, "sort")
