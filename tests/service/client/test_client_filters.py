import math
import uuid
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_lab.requests.filters import parse, parse_list
from prefect_assay.errors import InputError
from prefect_assay.service.client import filters as f
from prefect_assay.service.models.vocabulary import ExperimentStatus


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (f.eq("status", "done"), "eq(status,done)"),
        (f.eq("status", ExperimentStatus.QUOTE_SENT), "eq(status,quote_sent)"),
        (f.neq("name", "a b"), 'neq(name,"a b")'),
        (f.gt("amount", 5), "gt(amount,5)"),
        (f.lt("amount", 0.5), "lt(amount,0.5)"),
        (f.gte("created_at", datetime(2026, 11, 21, 12, tzinfo=UTC)), "gte(created_at,2026-11-21T12:00:00Z)"),
        (
            f.lte("created_at", datetime(2026, 11, 21, 12, tzinfo=timezone(timedelta(hours=2)))),
            "lte(created_at,2026-11-21T10:00:00Z)",
        ),
        (f.eq("day", date(2026, 11, 21)), "eq(day,2026-11-21)"),
        (f.contains("name", "pa-1"), "contains(name,pa-1)"),
        (f.between("amount", 1, 2), "between(amount,1,2)"),
        (f.in_("id", ["a", "b"]), "in(id,a,b)"),
        (f.and_(f.eq("a", "x"), f.eq("b", "y")), "and(eq(a,x),eq(b,y))"),
        (f.eq("a", "x") | ~f.eq("b", "y"), "or(eq(a,x),not(eq(b,y)))"),
        (f.eq("a", "x") & f.is_null("b"), "and(eq(a,x),is_null(b))"),
        (f.and_(f.eq("a", "x")), "eq(a,x)"),
        (f.is_not_null("b"), "is_not_null(b)"),
        (f.gt(f.as_float(f.at("metadata", "kd")), 0.1), "gt(float(at(metadata,kd)),0.1)"),
        (f.eq(f.at(f.at("m", "a b"), "c"), "x"), 'eq(at(at(m,"a b"),c),x)'),
        (f.eq(f.as_int("a"), 1), "eq(int(a),1)"),
        (f.eq(f.as_text("a"), "1"), 'eq(text(a),"1")'),
        (f.gt(f.as_timestamp("a"), date(2026, 1, 2)), "gt(timestamp(a),2026-01-02)"),
        (f.eq(f.as_date("a"), date(2026, 1, 2)), "eq(date(a),2026-01-02)"),
        (f.eq("flag", value=True), "eq(flag,true)"),
        (f.eq("name", "true"), 'eq(name,"true")'),
        (f.eq("name", "1e5"), 'eq(name,"1e5")'),
        (f.eq("name", 'say "hi" \\ bye'), 'eq(name,"say \\"hi\\" \\\\ bye")'),
        (f.eq("name", ""), 'eq(name,"")'),
        (f.eq("name", "a,b)"), 'eq(name,"a,b)")'),
    ],
)
def test_the_builder_writes_the_contracts_language(built, text):
    assert str(built) == text


def test_sorting_is_canonical_and_bounded():
    assert f.sorted_by(f.desc("created_at"), f.asc(f.as_float(f.at("m", "k")))) == (
        "desc(created_at),asc(float(at(m,k)))"
    )
    f.sorted_by(*[f.asc("a")] * 8)
    with pytest.raises(InputError, match="8 columns"):
        f.sorted_by(*[f.asc("a")] * 9)
    with pytest.raises(InputError):
        f.sorted_by()


@pytest.mark.parametrize(
    "build",
    [
        lambda: f.eq("a,b", "x"),
        lambda: f.eq("", "x"),
        lambda: f.eq("a) or (b", "x"),
        lambda: f.in_("a", []),
        lambda: f.in_("a", "abc"),
        f.and_,
        f.or_,
        lambda: f.gt("a", math.nan),
        lambda: f.gt("a", math.inf),
        lambda: f.gt("a", datetime(2026, 1, 1)),  # noqa: DTZ001 - that is the point
    ],
)
def test_malformed_expressions_are_refused(build):
    with pytest.raises(InputError):
        build()


@given(st.text())
def test_any_text_comes_back_from_the_labs_parser_as_it_was(value):
    tree = parse(str(f.eq("name", value)))
    assert (tree.name, [a.text for a in tree.arguments]) == ("eq", ["name", value])


@given(st.lists(st.text(), min_size=1, max_size=5), st.uuids())
def test_values_never_run_into_each_other(values, key):
    tree = parse(str(f.and_(f.in_("a", values), f.eq("id", key), f.eq(f.at("m", values[0]), "x"))))
    members, same, path = tree.arguments
    assert [a.text for a in members.arguments] == ["a", *values]
    assert uuid.UUID(same.arguments[1].text) == key
    assert path.arguments[0].arguments[1].text == values[0]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_keep_their_value(number):
    assert float(parse(str(f.eq("a", number))).arguments[1].text) == number


def test_sorts_are_understood_by_the_lab():
    columns = parse_list(f.sorted_by(f.desc("a"), f.asc(f.at("m", "x y"))))
    assert [c.name for c in columns] == ["desc", "asc"]
