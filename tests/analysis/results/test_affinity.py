"""Affinities as people write them become K_D in M, or are refused; never a wrong number that looks right."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.analysis.results.affinity import (
    Affinity,
    UnclearAffinity,
    parse_kd_title,
    read_affinities,
    unclear_titles,
)
from prefect_assay.service.assays import KD


def column(title, *cells, unit=None):
    affinities, _ = read_affinities([title], [[cell] for cell in cells], unit=unit)
    return affinities


def values(title, *cells, unit=None):
    return [affinity.kd_M for affinity in column(title, *cells, unit=unit)]


def refusal(title, *cells, unit=None):
    with pytest.raises(UnclearAffinity) as refused:
        column(title, *cells, unit=unit)
    return refused.value


@pytest.mark.parametrize(
    ("title", "unit"),
    [
        ("KD (nM)", "nM"),
        ("kd_nM", "nM"),
        ("KD[pM]", "pM"),
        ("K_D (M)", "M"),
        ("Kd / µM", "uM"),
        ("Kd, \u03bcM", "uM"),
        ("kd_mean", ""),
        ("kd", ""),
        *(
            (title, None)
            for title in (
                "kd_log_std", "kd_low_M", "kd (1/s)", "kd_per_s", "kd_error", "kd_units", "KD (kcal/mol)", "kdis (1/s)",
                "affinity", "binding", "ipTM", "predicted_kd_nM", "kd_app_nM", "seq", "ka (1/Ms)", "kd_rank", "pkd_std", "",
                "pKD", "-log10(KD)", "log10_kd_nM", "KD (nmol/L)", "kd nanomolar", "Mean KD (nM)", "Binding affinity (nM)",
            )
        ),
    ],
)  # fmt: skip
def test_a_title_says_the_unit(title, unit):
    assert parse_kd_title(title) == unit


@pytest.mark.parametrize(
    "title",
    ["pKD", "−log10(KD [M])", "log10_kd_nM", "KD (nmol/L)", "KD (kcal/mol)", "Binding affinity (nM)"],  # noqa: RUF001
)
def test_a_title_that_is_not_read_is_named(title):
    assert unclear_titles(["name", title]) == (title,)
    affinities, (note,) = read_affinities([title], [["7.2"]])
    assert affinities == [Affinity()]
    assert "is not read" in note


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("12.5", Affinity(12.5e-9)),
        (" 1.25e1 ", Affinity(12.5e-9)),
        ("12.5 nM", Affinity(12.5e-9)),
        ("<12.5", Affinity(12.5e-9, "<")),
        ("≤ 12.5", Affinity(12.5e-9, "<")),
        (">= 12.5", Affinity(12.5e-9, ">")),
        ("> 10000 nM", Affinity(1e-5, ">")),
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
    (affinity,) = column("KD (nM)", cell)
    assert (affinity.qualifier, affinity.binds) == (expected.qualifier, expected.binds)
    assert affinity.kd_M == (None if expected.kd_M is None else pytest.approx(expected.kd_M, rel=1e-12))


@pytest.mark.parametrize(
    "cell",
    [
        "12,5",
        "1,250",
        "1,250.5",
        "1'250",
        "1 250",
        "1.25 x 10^1",
        "12.5 ± 0.4",
        "~12.5",
        "ca. 12.5",
        "0.0125 µM",
        "10 mg/ml",
    ],
)
def test_a_cell_in_another_form_is_refused_with_its_row(cell):
    error = refusal("KD (nM)", "12", cell)
    assert error.at == 1
    assert "KD (nM) is" in error.problem


@given(
    kd=st.lists(st.floats(1e-12, 1e-3), min_size=1, max_size=6),
    unit=st.sampled_from(KD.shown),
    title=st.sampled_from(["KD ({})", "kd_{}", "Kd [{}]", "K_D, {}"]),
)
def test_every_value_comes_back_in_molar(kd, unit, title):
    cells = [f"{value * KD.units[unit]:.12e}" for value in kd]
    assert values(title.format(unit), *cells) == pytest.approx(kd, rel=1e-9)


@given(
    title=st.sampled_from(["kd", "KD (nM)", "Kd_uM"]),
    cells=st.lists(st.text(max_size=12), max_size=4),
)
def test_any_cells_are_read_within_what_assays_give_or_refused_by_their_place(title, cells):
    try:
        affinities = column(title, *cells)
    except UnclearAffinity as error:
        assert error.at is None or error.at < len(cells)  # noqa: PT017
        return
    assert all(KD.least <= affinity.kd_M <= KD.most for affinity in affinities if affinity.kd_M is not None)


@given(st.lists(st.floats(1e-2, 1e9, exclude_min=True), min_size=1, max_size=5))
def test_numbers_that_cannot_be_molar_are_never_taken_without_a_unit(numbers):
    assert "cannot be taken as M" in refusal("kd", *(repr(number) for number in numbers)).problem


def test_a_column_without_a_unit_is_judged_by_its_values():
    affinities, notes = read_affinities(["kd"], [["1.2e-9"], ["3e-7"], [">1e-4"], [""]])
    assert [affinity.kd_M for affinity in affinities] == [1.2e-9, 3e-7, 1e-4, None]
    assert notes == ["kd has no unit, and its values (1.2e-09 to 0.0001) are taken as M"]

    assert "(12.5, 850) cannot be taken as M" in refusal("kd", "12.5", "850").problem
    assert "(850)" in refusal("kd", "1.2e-9", "850").problem
    assert "(0.0005, 0.004)" in refusal("kd", "0.0005", "0.004").problem
    assert values("kd", "12.5", "850", unit="nM") == pytest.approx([12.5e-9, 850e-9])
    for problem in (refusal("kd", "12.5", "850"), refusal("kd", "0.004")):
        assert "--kd-unit" in problem.problem


def test_values_outside_of_what_assays_give_are_refused_with_their_row():
    assert refusal("KD (M)", "1e-9", "12.5").at == 1
    assert refusal("kd_nM", "12", "0").at == 1
    assert refusal("kd_nM", "-3").at == 0
    assert refusal("kd_nM", "10", "inf").at == 1
    assert refusal("kd_nM", "10", "weak").at == 1
    assert refusal("kd_nM", "10", "12 mg/ml").at == 1
    assert "in another unit" in refusal("kd_nM", "850", "3e-6").problem  # 3 µM in M, below a title of nM


def test_a_unit_and_a_qualifier_may_have_columns_of_their_own():
    titles = ["name", "KD", "KD unit", "kd_qualifier"]
    affinities, _ = read_affinities(
        titles, [["a", "12.5", "nM", ""], ["b", "10", "µM", ">"], ["c", "", "", ""]]
    )
    assert [affinity.kd_M for affinity in affinities] == [pytest.approx(12.5e-9), pytest.approx(1e-5), None]
    assert [affinity.qualifier for affinity in affinities] == [None, ">", None]
    with pytest.raises(UnclearAffinity, match="the unit is 'mg/ml'"):
        read_affinities(["KD", "unit"], [["12.5", "mg/ml"]])


def test_two_columns_of_k_d_are_refused():
    with pytest.raises(
        UnclearAffinity, match=r"'KD \(nM\)' and 'kd_M' both give K_D; leave one of the two out"
    ):
        read_affinities(["KD (nM)", "kd_M"], [["10", "1e-8"]])


def test_the_rate_of_dissociation_of_an_instrument_is_no_affinity():
    affinities, _ = read_affinities(["ka (1/Ms)", "kd (1/s)", "KD (M)"], [["1e5", "1e-3", "1e-8"]])
    assert affinities[0].kd_M == 1e-8
    affinities, _ = read_affinities(["ka", "kd", "KD"], [["1e5", "1e-3", "1e-8"]])
    assert affinities[0].kd_M == 1e-8
