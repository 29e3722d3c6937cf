"""Histories of other programs: words for calls, signs of limits, rates, controls and separators are read right or refused."""

import random

import pytest

from prefect_assay.analysis.results import (
    DesignSummary,
    HitRate,
    Outcome,
    count_hit_rates,
    get_objective_value,
    is_hit,
)
from prefect_assay.analysis.selection import read_history
from prefect_assay.analysis.selection.backtest import Plan, play_purchases
from prefect_assay.designs.selection import SelectionSettings
from prefect_assay.errors import InputError
from prefect_assay.service.assays import Objective


def table(header, *rows):
    """A table whose designs have residues of their own."""
    random.seed(7)
    lines = [f"name,sequence,{header}"]
    for number, row in enumerate(rows):
        lines.append(f"d{number},{''.join(random.choices('ACDEFGHIKLMNPQRSTVWY', k=40))},{row}")
    return "\n".join(lines) + "\n"


def outcomes(history):
    return [design.outcome for design in history.designs]


def rate(history, **settings):
    return count_hit_rates(history.designs, lambda _: "all", **settings).get("all")


@pytest.mark.parametrize(
    "word",
    [
        "no binding",
        "Non binder",
        "nonbinder",
        "NB",
        "N",
        "F",
        "No Binding Detected",
        "negative",
        "0",
        "FALSE",
    ],
)
@pytest.mark.parametrize("column", ["binding", "Binder", "is_binder"])
def test_words_for_no_binding_do_not_bind_and_their_number_is_not_read(column, word):
    history = read_history(table(f"{column},kd_nM", f"{word},12", "yes,5"))
    assert outcomes(history) == [Outcome.NO_BINDING, Outcome.MEASURED]
    assert history.designs[0].kd_M is None
    assert rate(history) == HitRate(1, 2)
    assert not history.notes


@pytest.mark.parametrize("word", ["insoluble", "not expressed", "No expression"])
def test_a_design_that_did_not_express_is_a_miss(word):
    history = read_history(table("binding,kd_nM", f"{word},12"))
    assert outcomes(history) == [Outcome.NO_EXPRESSION]
    assert rate(history) == HitRate(0, 1)
    assert is_hit(history.designs[0], Objective.EXPRESSION) is False


@pytest.mark.parametrize("word", ["not detected", "weak", "maybe", "inconclusive", "binder?", "0.87", "-"])
def test_an_unknown_word_is_quoted_and_its_number_is_neither_counted_nor_learned_from(word):
    history = read_history(table("binding,kd_nM", f"{word},0.001", "yes,5"))
    first = history.designs[0]
    assert (first.outcome, first.kd_M, is_hit(first)) == (Outcome.UNKNOWN, None, None)
    assert get_objective_value(first, Objective.AFFINITY) is None
    (note,) = history.notes
    assert f"binding is '{word}" in note
    assert "in 1 row, which is not a known word" in note


def test_a_dash_is_a_call_beside_a_plus():
    assert outcomes(read_history(table("binding", "+", "-"))) == [Outcome.BINDING, Outcome.NO_BINDING]


def test_a_column_that_holds_no_calls_is_named_by_its_title():
    (note,) = read_history(table("Binder,kd_nM", "AbX,12")).notes
    assert "Binder is 'AbX' in 1 row" in note
    assert "rename the column if it holds no calls" in note


def test_many_unknown_words_are_one_note():
    history = read_history(table("binding", *(f"word {number}" for number in range(40))))
    (note,) = history.notes
    assert "'word 0', 'word 1'" in note
    assert "or one of 35 other words in 40 rows" in note


def test_a_backtest_counts_the_designs_that_do_not_bind():
    history = read_history(
        table(
            "binding,iptm",
            *(f"{'binder' if number % 6 == 0 else 'no binding'},0.{number + 10}" for number in range(60)),
        )
    )
    assert rate(history) == HitRate(10, 60)
    played = play_purchases(
        history.designs, SelectionSettings(), Plan(rounds=1, batch=6, splits=2, warm=False)
    )
    assert (played.designs, played.designs_that_hit) == (60, 10)


@pytest.mark.parametrize(
    ("word", "hit"),
    [
        ("unknown", None),
        ("n.d.", None),
        ("somewhat", None),
        ("", None),
        ("high", True),
        ("Yes", True),
        ("none", False),
        ("no", False),
    ],
)
def test_only_known_words_say_that_a_design_expresses(word, hit):
    design = DesignSummary(name="d", experiment_code="", outcome=Outcome.UNKNOWN, expression=word or None)
    assert is_hit(design, Objective.EXPRESSION) is hit
    history = read_history(table("binding,expression", f",{word}"))
    assert is_hit(history.designs[0], Objective.EXPRESSION) is hit


@pytest.mark.parametrize(
    "title", ["Modifier", "operator", "standard_relation", "censored", "prefix", "x", "kd_modifier"]
)
@pytest.mark.parametrize("order", ["kd_nM,{}", "{},kd_nM", "{},ipTM,kd_nM"])
def test_a_column_of_signs_makes_limits(title, order):
    header = order.format(title)
    cells = {
        title: (">", "=", "<", "=", ">="),
        "kd_nM": ("10000", "12", "0.1", "5", "10000"),
        "ipTM": ("0.5",) * 5,
    }
    rows = [",".join(cells[column][index] for column in header.split(",")) for index in range(5)]
    history = read_history(table(header, *rows))
    assert [design.qualifier for design in history.designs] == [">", None, "<", None, ">"]
    assert [get_objective_value(design, Objective.AFFINITY) for design in history.designs] == [
        None,
        pytest.approx(12),
        None,
        pytest.approx(5),
        None,
    ]
    assert is_hit(history.designs[0]) is None
    assert title not in history.designs[0].attributes


@pytest.mark.parametrize(
    ("header", "row", "message"),
    [
        ("kd_nM,operator,IC50_nM", "10000,>,5", "'operator' holds only signs .* 'kd_qualifier'"),
        ("IC50_nM,operator,Tm,kd_nM", "5,>,60,10000", "'operator' holds only signs"),
        ("kd_nM,pKD,Modifier", "10000,5,>", "'Modifier' holds only signs"),
        ("kd_nM,op1,op2", "10000,>,<", "both hold qualifiers|holds only signs"),
        ("kd_nM,kd_qualifier,operator", "10000,>,<", "both hold qualifiers"),
        (
            "kd_nM,Modifier",
            "10000,gt",
            r"'Modifier' seems to say which K_D are limits, as 'gt'; write <, > or =",
        ),
        ("kd_nM,Modifier", "10000,&gt;", "as '&gt;'"),
        ("kd_nM,Modifier", "10000,~", "as '~'"),
        ("kd_nM,censored", "10000,true", "as 'true'"),
        ("kd_nM,censored", "10000,right", "as 'right'"),
        ("kd_nM,type", "10000,lower bound", "as 'lower bound'"),
        ("kd_nM,kd_qualifier", "10000,gt", "the qualifier is 'gt'"),
    ],
)
def test_signs_in_doubt_are_refused(header, row, message):
    with pytest.raises(InputError, match=message):
        read_history(table(header, row))


@pytest.mark.parametrize(
    ("header", "row", "qualifier"),
    [
        ("kd_nM,IC50_nM,ic50_relation", "12,5,>", None),
        ("kd_nM,operator", "12,Anna", None),
        ("kd_nM,censored", "12,false", None),
        ("kd_nM,side", "12,left", None),
        ("kd_nM,pKD,KD_modifier", "10000,5,>", ">"),
        ("kd_nM,pKD,pKD_modifier", "10000,5,>", None),
        ("kd_nM,Modifier,pTM", "10000,>,0.7", ">"),
    ],
)
def test_signs_of_another_column_leave_the_value_exact(header, row, qualifier):
    (design,) = read_history(table(header, row)).designs
    assert design.qualifier == qualifier


@pytest.mark.parametrize("column", ["control", "Control", "is_control", "Is Control"])
@pytest.mark.parametrize("word", ["true", "TRUE", "yes", "1"])
def test_controls_are_not_counted(column, word):
    history = read_history(table(f"kd_nM,{column}", "12,false", f"1,{word}", "5,"))
    assert [design.control for design in history.designs] == [None, True, None]
    assert rate(history) == HitRate(2, 2)
    summary = f"name,outcome,aa_string,kd_M,{column}\na,measured,ACD,1e-9,{word}\nb,measured,ACE,1e-9,\n"
    assert rate(read_history(summary)) == HitRate(1, 1)


def test_an_unclear_control_is_refused_with_its_line():
    with pytest.raises(InputError, match=r"line 3: control is 'positive'; write true or false"):
        read_history(table("kd_nM,control", "12,false", "1,positive"))


@pytest.mark.parametrize("titles", ["ka,kd", "kon,kd", "k_on,Kd", "ka (1/Ms),kd", "kd,kon_per_M_s"])
def test_kd_beside_a_rate_of_association_is_a_rate(titles):
    on_first = not titles.startswith("kd")
    row = "120000,5e-5" if on_first else "5e-5,120000"
    with pytest.raises(
        InputError, match=r"the given table: '.*' next to the rate of association .* 'KD \(nM\)'"
    ):
        read_history(table(titles, row))


@pytest.mark.parametrize(
    ("titles", "row"),
    [
        ("ka,kd,KD", "1e5,1e-3,1e-8"),
        ("kon,koff,kd", "1e5,1e-3,1e-8"),
        ("ka,kd (nM)", "1e5,10"),
        ("ka,kd,kd_unit", "1e5,10,nM"),
    ],
)
def test_kd_with_a_unit_or_beside_all_constants_is_an_affinity(titles, row):
    (design,) = read_history(table(titles, row)).designs
    assert design.kd_M == pytest.approx(1e-8)


def test_a_unit_that_is_given_makes_kd_an_affinity():
    (design,) = read_history(table("ka,kd", "1e5,10"), kd_unit="nM").designs
    assert design.kd_M == pytest.approx(1e-8)


@pytest.mark.parametrize("cell", ["1.250", "2.300", ">1.250"])
def test_points_that_may_separate_thousands_are_refused_between_semicolons(cell):
    text = table("KD (nM)", cell)
    assert read_history(text).designs[0].kd_M == pytest.approx(float(cell.strip(">")) * 1e-9)
    with pytest.raises(InputError, match=r"line 2: .* may be meant in thousands or with three decimals"):
        read_history(text.replace(",", ";"))


@pytest.mark.parametrize("cells", [["1.250", "12.5"], ["0.250"], ["1.25"], ["1.250e1"], ["1250"]])
def test_points_that_are_decimal_ones_are_read_between_semicolons(cells):
    history = read_history(table("KD (nM)", *cells).replace(",", ";"))
    assert [design.kd_M for design in history.designs] == [
        pytest.approx(float(cell) * 1e-9) for cell in cells
    ]


@pytest.mark.parametrize("sign", ["gt", "around", "= >"])
def test_an_unknown_sign_of_a_summary_is_refused(sign):
    with pytest.raises(InputError, match="line 2: column qualifier"):
        read_history(f"name,outcome,concentration_nM,qualifier\na,measured,5,{sign}\n")


def test_a_limit_in_any_known_sign_is_no_measurement():
    for sign in ("<", "≤", "<="):
        (design,) = read_history(f"name,outcome,concentration_nM,qualifier\na,measured,5,{sign}\n").designs
        assert (design.qualifier, get_objective_value(design, Objective.EXPRESSION)) == ("<", None)
