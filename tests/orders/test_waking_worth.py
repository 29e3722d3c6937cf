"""Which runs the sweep wakes: never one too few, and few too many."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.orders.wait_decision import NotYet, WaitsFor, decide_wait, is_worth_waking, waits_for
from prefect_assay.service.models.experiment import ExperimentSummary
from prefect_assay.service.models.vocabulary import ExperimentStatus, ResultsStatus

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
STATUSES = st.one_of(st.sampled_from(list(ExperimentStatus)), st.text(max_size=12))
RESULTS = st.one_of(st.sampled_from(list(ResultsStatus)), st.text(max_size=12))


def found(status, results="none", *, days=10):
    created = NOW - timedelta(days=days)
    return ExperimentSummary(id="e", code="C-1", status=status, results_status=results, created_at=created)


def worth(kind, experiment, *, news, patience=45):
    return is_worth_waking(kind, experiment, patience=timedelta(days=patience), now=NOW, news=news)


@given(STATUSES, RESULTS, st.integers(0, 60), st.booleans())
def test_a_run_that_would_go_on_is_never_left_asleep(status, results, days, news):
    experiment = found(status, results, days=days)
    decision = decide_wait(
        experiment.status, experiment.results_status, NOW, experiment.created_at + timedelta(days=45)
    )
    goes_on = decision is not NotYet.NOTHING
    assert worth(WaitsFor.RESULTS, experiment, news=news) == goes_on
    if goes_on and decision is not NotYet.PARTIAL:
        assert worth(WaitsFor.MORE_RESULTS, experiment, news=news)


@pytest.mark.parametrize("status", ["in_queue", "in_production", "data_analysis", "on_the_moon"])
def test_progress_alone_wakes_no_run_that_waits_for_results(status):
    assert not worth(WaitsFor.RESULTS, found(status), news=True)


def test_the_same_preliminary_results_wake_once():
    experiment = found("in_review", "partial")
    assert worth(WaitsFor.RESULTS, experiment, news=False)
    assert worth(WaitsFor.MORE_RESULTS, experiment, news=True)
    assert not worth(WaitsFor.MORE_RESULTS, experiment, news=False)


@pytest.mark.parametrize("status", [s for s in ExperimentStatus if s != "waiting_for_confirmation"])
def test_a_run_that_waits_for_a_quote_is_woken_by_everything_that_can_mean_one(status):
    assert worth(WaitsFor.QUOTE, found(status), news=False)


def test_a_quote_that_is_not_there_is_looked_for_on_news_only():
    for status in ("waiting_for_confirmation", "on_the_moon"):
        assert not worth(WaitsFor.QUOTE, found(status), news=False)
        assert worth(WaitsFor.QUOTE, found(status), news=True)


@given(STATUSES, RESULTS)
def test_a_run_of_another_version_is_woken_by_any_news(status, results):
    assert worth(waits_for("something-newer"), found(status, results), news=True)
    assert worth(waits_for(None), found(status, results), news=True)


def test_the_first_word_of_the_key_names_the_reason_to_wait():
    assert waits_for("results-0a1b:6f") == WaitsFor.RESULTS
    assert waits_for("partial-0a1b:6f") == WaitsFor.MORE_RESULTS
    assert waits_for("again-steps-0a1b:6f") == "again"
    assert waits_for("") is None
    assert waits_for("something-newer-0a1b:6f") is None
