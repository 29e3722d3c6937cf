"""The pure decision, over every combination of status and results status (contract 3)."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.orders.job import OutcomeKind
from prefect_assay.orders.wait_decision import NotYet, decide_wait
from prefect_assay.service.models.vocabulary import ExperimentStatus, ResultsStatus

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(days=1)


@pytest.mark.parametrize("status", [s for s in ExperimentStatus if s not in {"done", "canceled"}])
@pytest.mark.parametrize(
    ("results", "expected"), [("none", NotYet.NOTHING), ("partial", NotYet.PARTIAL), ("all", NotYet.PARTIAL)]
)
def test_before_done_nothing_is_final(status, results, expected):
    assert decide_wait(status, results, NOW, LATER) == expected


def test_done_with_all_results_is_ready_even_after_the_deadline():
    assert decide_wait("done", "all", LATER, NOW) == OutcomeKind.DONE


@pytest.mark.parametrize(("results", "expected"), [("none", NotYet.NOTHING), ("partial", NotYet.PARTIAL)])
def test_done_without_all_results_waits_until_the_deadline(results, expected):
    assert decide_wait("done", results, NOW, LATER) == expected
    assert decide_wait("done", results, LATER, LATER) == OutcomeKind.OVERDUE


@pytest.mark.parametrize("results", list(ResultsStatus))
def test_canceled_fails_whatever_else_is_true(results):
    assert decide_wait("canceled", results, LATER, NOW) == OutcomeKind.CANCELED


@given(st.text(max_size=20), st.text(max_size=20), st.booleans())
def test_unknown_words_never_end_a_wait_before_the_deadline(status, results, late):
    decision = decide_wait(status, results, LATER if late else NOW, LATER)
    if status in {"done", "canceled"} or results in {"partial", "all"}:
        return
    assert decision == (OutcomeKind.OVERDUE if late else NotYet.NOTHING)


@pytest.mark.parametrize("word", ["complete", "released"])
def test_an_unknown_word_for_results_is_no_reason_to_leave_them_there(word):
    assert decide_wait("done", word, NOW, LATER) == NotYet.PARTIAL
    assert decide_wait("in_production", word, NOW, LATER) == NotYet.NOTHING
