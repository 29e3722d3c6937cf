"""The filter and sort language (contract 4.1): odd cases, and refusals that say where."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay_lab.kernel.refusals import Refusal
from assay_lab.requests import filters
from assay_lab.requests.filters import Atom, Node
from assay_lab.service import seeding
from lab_support.core import PRICED, get, lab_core, order, refusal, spec


@pytest.fixture(scope="module")
def core():
    made = lab_core()
    order(made, name="alpha")
    order(made, spec(experiment_type="screening"), name="beta 100%_x")
    order(
        made,
        spec(experiment_type="thermostability", method=None, target_id=None),
        name="Gamma",
        skip_draft=True,
    )
    stranger = seeding.add_organization(made.lab, "other", "Other")
    body = {"experiment_spec": spec(), "name": "alpha"}
    made.request("POST", "/experiments", token=stranger.member_token, json_body=body)
    yield made
    made.close()


def names(core, **query):
    return [item["name"] for item in get(core, "/experiments", **query)["items"]]


def test_parse_keeps_structure_and_positions():
    tree = filters.parse_expression('and(eq(status, "a b"),in(x,1,2))')
    assert isinstance(tree, Node)
    assert [argument.name for argument in tree.arguments] == ["eq", "in"]
    assert tree.arguments[0].arguments[1] == Atom("a b", 16, quoted=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("eq(status,draft)", ["beta 100%_x", "alpha"]),
        ("eq(status,WaitingForConfirmation)", ["Gamma"]),
        ("and(eq(status,draft),contains(name,ALPH))", ["alpha"]),
        ('contains(name,"100%_")', ["beta 100%_x"]),
        ('contains(name,"%")', ["beta 100%_x"]),
        ('contains(name,"_")', ["beta 100%_x"]),
        ("between(created_at,2026-03-01,2026-03-03)", ["Gamma", "beta 100%_x", "alpha"]),
        ("eq(date(created_at),2026-03-02)", ["Gamma", "beta 100%_x", "alpha"]),
        ("gt(created_at,2026-03-02T10:00:00+01:00)", []),
        ("gte(created_at,2026-03-02T10:00:00+01:00)", ["Gamma", "beta 100%_x", "alpha"]),
        ('eq(code,"x\' OR 1=1; DROP TABLE experiments")', []),
        # The specification is searched as the record shows it, with its defaults and its target.
        ("eq(at(experiment_spec,n_replicates),3)", ["Gamma", "beta 100%_x", "alpha"]),
        ("is_not_null(at(experiment_spec,antigen_concentrations))", ["alpha"]),
        ("is_null(at(experiment_spec,target))", ["Gamma"]),
        (f"eq(at(at(experiment_spec,target),target_catalog_id),{PRICED['id']})", ["beta 100%_x", "alpha"]),
        (f'eq(at(at(experiment_spec,target),name),"{PRICED["name"]}")', ["beta 100%_x", "alpha"]),
        (f"eq(at(experiment_spec,target_id),{PRICED['id']})", ["beta 100%_x", "alpha"]),
        # The contract shows no quotes: a client that knows only it sends the bare text (4.1).
        ("in(name,alpha,beta 100%_x)", ["beta 100%_x", "alpha"]),
        ("contains(name,a 1)", ["beta 100%_x"]),
    ],
)
def test_filter(core, text, expected):
    assert names(core, filter=text) == expected


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("eq(stauts,draft)", "unknown field 'stauts' at position 3"),
        ("eq(status,finished)", "is not a value of type enum, one of canceled"),
        ("like(name,x)", "unknown operator 'like' at position 0"),
        ("eq(name)", "eq takes 2 arguments, not 1"),
        ("eq(name,a", "expected ',' or ')'"),
        ("eq(name,a))", "unexpected text at position 10"),
        ("status", "expected a condition"),
        ("gt(created_at,yesterday)", "'yesterday' is not a value of type timestamp at position 14"),
        ("eq(id,12)", "'12' is not a value of type uuid"),
        ("contains(created_at,2026)", "cast it with text"),
        ("at(name,x)", "unknown operator"),
        ("eq(at(name,x),1)", "at(...) needs a JSON field"),
        ("eq(int(name),99999999999999999999)", "is not a value of type int"),
        ("not(" * 20 + "eq(name,a)" + ")" * 20, "nested deeper"),
        ("in(name," + ",".join("x" * 500) + ")", "more than 400 parts"),
        ("eq(name," + "x" * 5000 + ")", "longer than 4000"),
    ],
)
def test_a_bad_filter_says_where(core, text, complaint):
    answer = refusal(core, "GET", "/experiments", query={"filter": text})
    assert answer.status == 400
    assert complaint in answer.message


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("desc(at(experiment_spec,method)), name", ["alpha", "beta 100%_x", "Gamma"]),
        ("asc(timestamp(created_at)),-code", ["Gamma", "beta 100%_x", "alpha"]),
        ("created_at", ["alpha", "beta 100%_x", "Gamma"]),
        ("-created_at", ["Gamma", "beta 100%_x", "alpha"]),
    ],
)
def test_sort_forms(core, sort, expected):
    assert names(core, sort=sort) == expected


@pytest.mark.parametrize(
    "sort",
    ["-desc(name)", "at(experiment_spec,method):asc", ",".join(["name"] * 9), "size", "desc(name,code)"],
)
def test_a_bad_sort_is_refused(core, sort):
    assert refusal(core, "GET", "/experiments", query={"sort": sort}).status == 400


_FIELDS = st.sampled_from(
    [
        "name", "status", "created_at", "experiment_spec", "at(experiment_spec,method)", "text(id)", "float(name)",
        "int(code)",
    ]
)  # fmt: skip
_VALUES = st.one_of(st.sampled_from(["draft", "2026-03-02", "1e999", "true"]), st.text(max_size=8)).map(
    lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
)
_TESTS = st.one_of(
    st.builds("{}({},{})".format, st.sampled_from(["eq", "neq", "gt", "lte", "contains"]), _FIELDS, _VALUES),
    st.builds("between({},{},{})".format, _FIELDS, _VALUES, _VALUES),
    st.builds("is_null({})".format, _FIELDS),
)
_TREES = st.recursive(
    _TESTS,
    lambda inner: st.builds("{}({},{})".format, st.sampled_from(["and", "or"]), inner, inner),
    max_leaves=6,
)


@given(_TREES | st.text(max_size=60))
@settings(max_examples=300)
def test_any_filter_is_answered_of_the_own_organization_or_refused_with_400(core, text):
    try:
        page = get(core, "/experiments", filter=text)
        assert page["total"] + get(core, "/experiments", filter=f"not({text})")["total"] <= 3
    except Refusal as refused:
        assert refused.status == 400  # noqa: PT017 - both ends are fine


@given(
    st.lists(st.builds("{}({})".format, st.sampled_from(["asc", "desc"]), _FIELDS)).map(",".join)
    | st.text(max_size=60)
)
@settings(max_examples=200)
def test_any_sort_is_answered_or_refused_with_400(core, text):
    try:
        assert get(core, "/experiments", sort=text)["total"] == 3
    except Refusal as refused:
        assert refused.status == 400  # noqa: PT017 - both ends are fine


def length_of_statement(core, depth):
    """Characters of the longest statement for a filter on this many steps into a JSON field."""
    field = "experiment_spec"
    for step in range(depth):
        field = f"at({field},k{step})"
    statements = []
    core.lab.store._connection.set_trace_callback(statements.append)
    page = get(core, "/experiments", filter=f"is_null({field})")
    core.lab.store._connection.set_trace_callback(None)
    assert page["total"] == 3
    return max(map(len, statements))


def test_steps_into_json_do_not_multiply_the_statement(core):
    assert length_of_statement(core, 15) - length_of_statement(core, 1) < 14 * len('."k10"') * 2
