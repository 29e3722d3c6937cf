"""What became of earlier proposals: counts and rates per method, and rank correlations."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from prefect_assay.analysis.results import DesignSummary, HitRate, Outcome
from prefect_assay.analysis.selection import (
    MethodRecord,
    calibrate_chances,
    correlate_score,
    count_by_method,
)
from prefect_assay.designs.selection import SelectionSettings

NUMBERS = itertools.count()


def design(outcome=Outcome.MEASURED, **fields):
    attributes = {title: str(fields.pop(title)) for title in ("Method", "score") if title in fields}
    return DesignSummary(
        name=f"x{next(NUMBERS)}", experiment_code="E", outcome=outcome, attributes=attributes, **fields
    )


def test_each_method_has_its_counts_and_the_best_comes_first():
    designs = [
        design(Method="old", kd_M=1e-8),
        design(Outcome.NO_BINDING, Method="old"),
        design(Outcome.PENDING, Method="old"),
        design(Method="old", kd_M=1e-9, control=True),
        design(Method="new", kd_M=1e-8),
        design(Outcome.NO_EXPRESSION),
    ]
    records = count_by_method(designs, SelectionSettings(), {"old": 7, None: 2}, {"late": 3})
    assert records == (
        MethodRecord("new", 1, 1, HitRate(1, 1)),
        MethodRecord("old", 10, 3, HitRate(1, 2)),
        MethodRecord("(no method)", 3, 1, HitRate(0, 1)),
        MethodRecord("late", 3, 3, HitRate(0, 0)),
    )
    strict = count_by_method(designs, SelectionSettings(hit_limit=1), {}, {})
    assert [record.rate.hits for record in strict] == [0, 0, 0]


def test_a_high_score_of_a_tight_binder_is_a_positive_correlation():
    designs = [design(score=score, kd_M=kd) for score, kd in ((1, 4e-8), (2, 3e-8), (3, 2e-9))]
    ignored = [
        design(score=9, kd_M=1, qualifier=">"),
        design(score=9, kd_M=1, control=True),
        design(Outcome.NO_BINDING, score=9),
        design(score="n/a", kd_M=1),
        design(kd_M=1),
    ]
    correlation = correlate_score([*designs, *ignored], "score", SelectionSettings())
    assert (correlation.designs, correlation.rho) == (3, pytest.approx(1))
    assert math.isnan(correlate_score(designs[:2], "score", SelectionSettings()).rho)
    alike = [summary.model_copy(update={"attributes": {"score": "1"}}) for summary in designs]
    assert math.isnan(correlate_score(alike, "score", SelectionSettings()).rho)
    melts = [design(score=score, tm_C=tm) for score, tm in ((1, 70), (2, 60), (3, 50))]
    assert correlate_score(melts, "score", SelectionSettings(objective="melting")).rho == pytest.approx(-1)


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 6)), min_size=3, max_size=40))
def test_the_coefficient_is_that_of_scipy(pairs):
    first, second = zip(*pairs, strict=True)
    correlation = correlate_score(
        [design(score=score, tm_C=float(value)) for score, value in pairs],
        "score",
        SelectionSettings(objective="melting"),
    )
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert math.isnan(correlation.rho)
    else:
        assert correlation.rho == pytest.approx(stats.spearmanr(first, second).statistic)


def test_predicted_chances_are_compared_with_what_was_found_by_band():
    def chosen(chance, outcome, reason="hits with 20% (0% to 50%)"):
        return DesignSummary(
            name=f"d{next(NUMBERS)}",
            experiment_code="",
            outcome=outcome,
            attributes={"selection_score": str(chance), "selection_reason": reason},
        )

    bands = calibrate_chances(
        [
            chosen(0.2, Outcome.BINDING),
            chosen(0.12, Outcome.NO_BINDING),
            chosen(0.6, Outcome.BINDING),
            chosen(0.6, Outcome.PENDING),
            chosen(0.9, Outcome.BINDING, "ipTM 0.9, place 1 of 5"),
            chosen(0.9, Outcome.BINDING, "hits 100 with 90% (70% to 99%)"),
        ],
        SelectionSettings(),
    )

    assert [(band.low, band.predicted, band.rate) for band in bands] == [
        (0.1, pytest.approx(0.16), HitRate(1, 2)),
        (0.5, pytest.approx(0.6), HitRate(1, 1)),
    ]
