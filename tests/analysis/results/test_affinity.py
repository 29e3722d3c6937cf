"""Affinities as people write them become K_D in M, or are refused; never a wrong number that looks right."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.analysis.results.affinity import (
    HIGHEST_M,
    LOWEST_M,
    MOLAR,
    Affinity,
    Scale,
    UnclearAffinity,
    read_affinities,
    scale_of,
    unit_of,
)


def column(title, *cells, unit=None):
    found, _ = read_affinities([title], [[cell] for cell in cells], unit=unit)
    return found


def values(title, *cells, unit=None):
    return [each.kd_M for each in column(title, *cells, unit=unit)]


def refusal(title, *cells, unit=None):
    with pytest.raises(UnclearAffinity) as refused:
        column(title, *cells, unit=unit)
    return refused.value


@pytest.mark.parametrize(
    ("title", "scale"),
    [
        ("KD (nM)", Scale("nM")),
        ("kd_nM", Scale("nM")),
        ("KD[pM]", Scale("pM")),
        ("K_D (M)", Scale("M")),
        ("Kd_uM", Scale("uM")),
        ("Kd / µM", Scale("uM")),
        ("Kd, \u03bcM", Scale("uM")),
        ("KDnM", Scale("nM")),
        ("KD (nmol/L)", Scale("nM")),
        ("KD [mol l-1]", Scale("M")),
        ("kd nanomolar", Scale("nM")),
        ("Mean KD (nM)", Scale("nM")),
        ("kd_mean", Scale()),
        ("kd_nM_mean", Scale("nM")),
        ("Binding affinity (nM)", Scale("nM")),
        ("Equilibrium dissociation constant (M)", Scale("M")),
        ("pKD", Scale("M", -1)),
        ("pKd", Scale("M", -1)),
        ("-log10(KD)", Scale(None, -1)),
        ("−log10(KD [M])", Scale("M", -1)),  # noqa: RUF001
        ("neg_log10_kd", Scale(None, -1)),
        ("log10 kd", Scale(None, 1)),
        ("log10_kd_nM", Scale("nM", 1)),
        ("logKD", Scale(None, 1)),
        ("kd", Scale()),
        *(
            (title, None)
            for title in (
                "kd_log_std", "kd_low_M", "kd (1/s)", "kd_per_s", "kd_error", "kd_units", "KD (kcal/mol)", "kdis (1/s)",
                "affinity", "binding", "ipTM", "predicted_kd_nM", "kd_app_nM", "seq", "ka (1/Ms)", "kd_rank", "pkd_std", "",
            )
        ),
    ],
)  # fmt: skip
def test_a_title_says_the_unit(title, scale):
    assert scale_of(title) == scale


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("M", "M"),
        ("mM", "mM"),
        ("um", "uM"),
        ("µM", "uM"),
        ("nmol/L", "nM"),
        ("picomolar", "pM"),
        ("mg/ml", None),
    ],
)
def test_a_unit_is_read_in_its_forms(text, unit):
    assert unit_of(text) == unit


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("12.5", Affinity(12.5e-9)),
        ("12,5", Affinity(12.5e-9)),
        (" 1.25e1 ", Affinity(12.5e-9)),
        ("1.25 x 10^1", Affinity(12.5e-9)),
        ("1.25×10¹", Affinity(12.5e-9)),  # noqa: RUF001
        ("12.5 ± 0.4", Affinity(12.5e-9)),
        ("12.5 nM", Affinity(12.5e-9)),
        ("0.0125 µM", Affinity(12.5e-9)),
        ("1.25e-8 M", Affinity(12.5e-9)),
        ("~12.5", Affinity(12.5e-9)),
        ("≈ 12.5", Affinity(12.5e-9)),
        ("ca. 12.5", Affinity(12.5e-9)),
        ("<12.5", Affinity(12.5e-9, "<")),
        ("≤ 12.5", Affinity(12.5e-9, "<")),
        (">= 12.5", Affinity(12.5e-9, ">")),
        ("> 10 µM", Affinity(1e-5, ">")),
        ("1'250.5", Affinity(1250.5e-9)),
        ("1,250.5", Affinity(1250.5e-9)),
        ("1.250,5", Affinity(1250.5e-9)),
        ("1 250", Affinity(1250e-9)),
        ("1,250,000", Affinity(1250000e-9)),
        *(
            (cell, Affinity())
            for cell in ("", "null", "NA", "n.d.", "ND", "n.m.", "-", "–", "not determined")  # noqa: RUF001
        ),
        *(
            (cell, Affinity(binds=False))
            for cell in ("NB", "n.b.", "no binding", "Non-binder", "No Binding.")
        ),
    ],
)
def test_a_cell_is_read_as_it_is_meant(cell, expected):
    (found,) = column("KD (nM)", cell)
    assert (found.qualifier, found.binds) == (expected.qualifier, expected.binds)
    assert found.kd_M == (None if expected.kd_M is None else pytest.approx(expected.kd_M, rel=1e-12))


@given(
    kd=st.lists(st.floats(1e-12, 1e-3), min_size=1, max_size=6),
    unit=st.sampled_from(sorted(MOLAR)),
    title=st.sampled_from(
        ["KD ({})", "kd_{}", "Kd [{}]", "K_D, {}", "pKD", "-log10(KD) ({})", "log10_kd_{}"]
    ),
    comma=st.booleans(),
)
def test_every_value_comes_back_in_molar(kd, unit, title, comma):
    title = title.format(unit)
    scale = scale_of(title)
    per = 1 / MOLAR[scale.unit]
    numbers = [scale.log * math.log10(value * per) if scale.log else value * per for value in kd]
    cells = [f"{number:.12e}" for number in numbers]
    if comma:
        cells = [cell.replace(".", ",") for cell in cells]
    assert values(title, *cells) == pytest.approx(kd, rel=1e-9)


@given(
    title=st.sampled_from(["kd", "KD (nM)", "pKD", "log10 kd", "Kd_uM"]),
    cells=st.lists(st.text(max_size=12), max_size=4),
)
def test_any_cells_are_read_within_what_assays_give_or_refused_by_their_place(title, cells):
    try:
        found = column(title, *cells)
    except UnclearAffinity as error:
        assert error.at is None or error.at < len(cells)  # noqa: PT017
        return
    assert all(LOWEST_M <= each.kd_M <= HIGHEST_M for each in found if each.kd_M is not None)


@given(st.lists(st.floats(1e-2, 1e9, exclude_min=True), min_size=1, max_size=5))
def test_numbers_that_cannot_be_molar_are_never_taken_without_a_unit(numbers):
    assert "cannot be M" in refusal("kd", *(repr(number) for number in numbers)).problem


def test_a_column_without_a_unit_is_judged_by_its_values():
    found, notes = read_affinities(["kd"], [["1.2e-9"], ["3e-7"], [">1e-4"], [""]])
    assert [each.kd_M for each in found] == [1.2e-9, 3e-7, 1e-4, None]
    assert notes == ["kd has no unit, and its values (1.2e-09 to 3e-07) are taken as M"]

    assert "(12.5, 850) cannot be M" in refusal("kd", "12.5", "850").problem
    assert "not in one unit" in refusal("kd", "1.2e-9", "850").problem
    assert "may be in M, mM or uM" in refusal("kd", "0.0005", "0.004").problem
    assert "is not a log10" in refusal("log10_kd", "1.1").problem
    assert values("kd", "12.5", "850", unit="nM") == pytest.approx([12.5e-9, 850e-9])
    for problem in (refusal("kd", "12.5", "850"), refusal("kd", "0.004"), refusal("log10_kd", "1.1")):
        assert "--kd-unit" in problem.problem


def test_values_outside_of_what_assays_give_are_refused_with_their_row():
    assert refusal("KD (M)", "1e-9", "12.5").at == 1
    assert refusal("kd_nM", "12", "0").at == 1
    assert refusal("kd_nM", "-3").at == 0
    assert refusal("pKD", "7.2", "72").at == 1
    assert refusal("kd_nM", "10", "inf").at == 1
    assert refusal("kd_nM", "10", "weak").at == 1
    assert refusal("kd_nM", "10", "12 mg/ml").at == 1
    assert "in another unit" in refusal("kd_nM", "850", "3e-6").problem  # 3 µM in M, below a title of nM


def test_limits_of_a_negative_logarithm_are_turned_around():
    assert [each.qualifier for each in column("pKD", ">9", "<5", "7")] == ["<", ">", None]
    assert [each.qualifier for each in column("log10_kd", ">-5", "-9")] == [">", None]


def test_a_unit_and_a_qualifier_may_have_columns_of_their_own():
    titles = ["name", "KD", "KD unit", "kd_qualifier"]
    found, _ = read_affinities(titles, [["a", "12.5", "nM", ""], ["b", "10", "µM", ">"], ["c", "", "", ""]])
    assert [each.kd_M for each in found] == [pytest.approx(12.5e-9), pytest.approx(1e-5), None]
    assert [each.qualifier for each in found] == [None, ">", None]
    with pytest.raises(UnclearAffinity, match="the unit is 'mg/ml'"):
        read_affinities(["KD", "unit"], [["12.5", "mg/ml"]])


def test_two_columns_must_agree():
    found, _ = read_affinities(["KD (nM)", "pKD"], [["10", "8"], ["", "9"]])
    assert [each.kd_M for each in found] == pytest.approx([1e-8, 1e-9])
    with pytest.raises(UnclearAffinity, match=r"'KD \(nM\)' and 'kd_M' give different K_D") as refused:
        read_affinities(["KD (nM)", "kd_M"], [["10", "1e-8"], ["10", "1e-7"]])
    assert refused.value.at == 1


def test_the_rate_of_dissociation_of_an_instrument_is_no_affinity():
    found, _ = read_affinities(["ka (1/Ms)", "kd (1/s)", "KD (M)"], [["1e5", "1e-3", "1e-8"]])
    assert found[0].kd_M == 1e-8
    found, _ = read_affinities(["ka", "kd", "KD"], [["1e5", "1e-3", "1e-8"]])
    assert found[0].kd_M == 1e-8


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["12.5", "1,250"], [12.5e-9, 1250e-9]),
        (["12,5", "1250"], [12.5e-9, 1250e-9]),
        (["0,125"], [0.125e-9]),
        (["12,5", "1.250,5"], [12.5e-9, 1250.5e-9]),
    ],
)
def test_the_cells_of_a_column_decide_what_its_commas_are(cells, expected):
    assert values("kd_nM", *cells) == pytest.approx(expected)


@pytest.mark.parametrize(
    "cells", [["1,250"], ["850", "1,250"], ["12,5", "12.5"], ["12,5", "1.250"], ["1,2,3"]]
)
def test_commas_in_doubt_are_refused(cells):
    refusal("kd_nM", *cells)
