"""Values for people, and the ranking for the next round."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.analysis.results import ResultRow, is_hit, summarize
from prefect_assay.analysis.results.formats import format_molar, format_molar_range


def row(name, **fields):
    values = {"experiment_code": "E-1", "result_id": "r", "result_type": "affinity", "level": "summary"}
    return ResultRow.model_validate({**values, "name": name, "outcome": "measured", **fields})


TABLE = [
    row("weak", kd_M=3.2e-6, kon_per_M_s=7.0032e4, koff_per_s=6.72e-3),
    row("best", kd_M=7.41e-10, binding="true"),
    row("best", level="replicate", replicate=1, kd_M=7e-10),
    row("limit", kd_M=1e-12, qualifier="<"),
    row("screened", outcome="binding", binding_strength="medium"),
    row("screened-well", outcome="binding", binding_strength="strong"),
    row("none", outcome="no_binding"),
    row("silent", outcome="no_expression", kd_M=1e-13),
    row("control", kd_M=5e-10, control=True),
    row("melts", tm_C=61.27, result_type="thermostability"),
]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (7.41e-8, "74.1 nM"),
        (1e-9, "1.00 nM"),
        (9.996e-7, "1.00 µM"),
        (9.994e-7, "999 nM"),
        (3.162e-7, "316 nM"),
        (2.5e-3, "2.50 mM"),
        (12.0, "12.0 M"),
        (7e-13, "700 fM"),
        (1e-20, "1.00e-20 M"),
        (0.0, "0 M"),
        (None, "–"),  # noqa: RUF001  the sign for "not reported"
    ],
)
def test_concentrations_have_three_digits_and_a_unit_people_use(value, shown):
    assert format_molar(value) == shown


@given(st.floats(1e-15, 100))
def test_what_is_shown_is_within_half_a_percent(value):
    number, unit = format_molar(value).split()
    size = {"M": 1, "mM": 1e-3, "µM": 1e-6, "nM": 1e-9, "pM": 1e-12, "fM": 1e-15}[unit]
    assert float(number) * size == pytest.approx(value, rel=0.0051)
    assert len(number.replace(".", "")) == 3


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((6.21e-8, 1.04e-7), "62.1 to 104 nM"),
        ((9.75e-10, 1.2e-9), "975 pM to 1.20 nM"),
        ((None, 1.91e-9), "open to 1.91 nM"),
        ((None, None), ""),
    ],
)
def test_an_interval_names_a_unit_once_where_both_ends_have_it(ends, text):
    assert format_molar_range(*ends) == text


def test_a_lower_limit_follows_every_affinity():
    table = [
        row("open", kd_M=1e-10, qualifier=">"),
        row("known", kd_M=1e-6),
        row("called", outcome="binding"),
    ]
    assert [design.name for design in summarize(table)] == ["known", "open", "called"]


def test_a_kd_of_zero_is_no_affinity():
    (design,) = summarize([row("zero", kd_M=0.0)])
    assert (design.kd_M, is_hit(design)) == (None, None)
