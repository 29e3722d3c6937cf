"""Comparing campaigns: which designs are the same, ratios of values and limits, and intervals."""

import pytest

from prefect_assay.analysis.results.compare import compare_campaigns
from prefect_assay.analysis.results.design import DesignSummary


def design(campaign_id, name="d", **fields):
    values = {"experiment_code": campaign_id, "outcome": "measured", "result_type": "affinity"} | fields
    return DesignSummary(campaign_id=campaign_id, name=name, **values)


def change(first, second):
    (common,) = compare_campaigns({"a": [design("a", **first)], "b": [design("b", **second)]}).common
    return common.changes[0]


@pytest.mark.parametrize(
    ("first", "second", "words", "overlap"),
    [
        ({"kd_M": 1e-9}, {"kd_M": 4e-9}, "4", None),
        (
            {"kd_M": 1e-9, "kd_low_M": 8e-10, "kd_high_M": 2e-9},
            {"kd_M": 3e-9, "kd_low_M": 2e-9, "kd_high_M": 4e-9},
            "3",
            True,
        ),
        (
            {"kd_M": 1e-9, "kd_low_M": 8e-10, "kd_high_M": 1.2e-9},
            {"kd_M": 3e-9, "kd_low_M": 2e-9, "kd_high_M": 4e-9},
            "3",
            False,
        ),
        ({"kd_M": 1e-9, "qualifier": "<"}, {"kd_M": 5e-9, "kd_low_M": 4e-9, "kd_high_M": 6e-9}, "> 5", False),
        ({"kd_M": 1e-9, "kd_high_M": 2e-9}, {"kd_M": 1e-6, "qualifier": ">"}, "> 1000", False),
        ({"kd_M": 1e-9, "qualifier": "<"}, {"kd_M": 1e-6, "qualifier": ">"}, "> 1000", False),
        ({"kd_M": 1e-6, "qualifier": ">"}, {"kd_M": 1e-6, "qualifier": ">"}, "–", True),  # noqa: RUF001
        ({"kd_M": 1e-9}, {"outcome": "no_binding"}, "–", None),  # noqa: RUF001
        (
            {"tm_C": 61.0, "tm_low_C": 60.0, "tm_high_C": 62.0},
            {"tm_C": 62.2, "tm_low_C": 61.5, "tm_high_C": 63.0},
            "+1.2 °C",
            True,
        ),
    ],
)
def test_a_change_says_no_more_than_limits_and_intervals_allow(first, second, words, overlap):
    difference = change(first, second)
    assert (difference.words, difference.intervals_overlap) == (words, overlap)


def test_designs_are_the_same_by_residues_or_else_by_name():
    tables = {
        "a": [design("a", "d1", aa_string="MKV", kd_M=1e-9), design("a", "d2", aa_string="MKL", kd_M=1e-9)],
        "b": [
            design("b", "other", aa_string="mkv", kd_M=2e-9),
            design("b", "d2", aa_string="AAA", kd_M=2e-9),
        ],
        "c": [design("c", "d2", kd_M=3e-9)],
    }
    common = compare_campaigns(tables).common
    assert [(entry.first.name, [c.design.campaign_id for c in entry.changes]) for entry in common] == [
        ("d1", ["b"]),
        ("d2", ["c"]),
    ]
    assert [counted.rate.words for counted in compare_campaigns(tables).tallies] == [
        "2 of 2",
        "2 of 2",
        "1 of 1",
    ]


@pytest.mark.parametrize(
    ("first", "later", "ratios"),
    [
        ([("EGFR", 1e-9), ("HER2", 1e-6)], ("HER2", 2e-6), {"HER2": 2.0}),
        ([("HER2", 1e-6), ("EGFR", 1e-9)], ("her2 ", 2e-6), {"HER2": 2.0}),
        ([("EGFR", 1e-9)], ("HER2", 1e-6), {}),
        ([(None, 1e-9)], ("HER2", 2e-9), {None: 2.0}),
    ],
)
def test_values_of_different_targets_are_not_compared(first, later, ratios):
    tables = {
        "a": [design("a", target=target, kd_M=kd) for target, kd in first],
        "b": [design("b", target=later[0], kd_M=later[1])],
    }
    common = compare_campaigns(tables).common
    assert {one.first.target: one.changes[0].kd_ratio for one in common} == ratios


def test_a_melting_temperature_is_compared_with_that_of_its_own_assay():
    tables = {
        "a": [design("a", kd_M=1e-9), design("a", tm_C=60.0, result_type="thermostability")],
        "b": [design("b", tm_C=65.0, result_type="thermostability")],
    }
    (compared,) = compare_campaigns(tables).common
    assert (compared.first.tm_C, compared.changes[0].words) == (60.0, "+5.0 °C")
