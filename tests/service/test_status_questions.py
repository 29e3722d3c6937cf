"""Each question about a status, over every status and a word that the contract does not have."""

import pytest

from prefect_assay.service.models import status_questions as questions
from prefect_assay.service.models.vocabulary import ExperimentStatus, InvoiceStatus, QuoteStatus

UNDER_WORK = {"in_queue", "in_production", "data_analysis", "in_review"}
YES = {
    questions.has_work_begun: (ExperimentStatus, UNDER_WORK | {"done"}),
    questions.is_accepted: (ExperimentStatus, UNDER_WORK | {"done", "waiting_for_materials"}),
    questions.is_before_acceptance: (ExperimentStatus, {"waiting_for_confirmation", "quote_sent"}),
    questions.is_inactive: (ExperimentStatus, {"draft", "canceled"}),
    questions.is_over: (ExperimentStatus, {"done", "canceled"}),
    questions.is_quote_open: (QuoteStatus, {"open", "pending"}),
    questions.is_quote_rejected: (QuoteStatus, {"rejected", "canceled"}),
    questions.is_quote_expired: (QuoteStatus, {"expired", "stale"}),
    questions.is_invoice_paid: (InvoiceStatus, {"paid"}),
    questions.is_invoice_payable: (InvoiceStatus, {"draft", "open"}),
    questions.is_invoice_dropped: (InvoiceStatus, {"void", "uncollectible"}),
    questions.is_invoice_closed: (InvoiceStatus, {"paid", "void", "uncollectible"}),
}
CASES = [
    pytest.param(
        question, spelling(status), status in yes, id=f"{question.__name__}-{spelling.__name__}-{status}"
    )
    for question, (kind, yes) in YES.items()
    for spelling in (kind, str)
    for status in kind
]


@pytest.mark.parametrize(("question", "status", "answer"), CASES)
def test_a_status_is_answered_as_word_and_as_text(question, status, answer):
    assert question(status) is answer


@pytest.mark.parametrize("question", YES)
@pytest.mark.parametrize("word", ["partly_paid", "on_hold", "", "PAID ", "done!", None])
def test_an_unknown_word_is_never_the_favourable_answer(question, word):
    assert question(word) is False


def test_every_question_has_its_row():
    public = {value for name, value in vars(questions).items() if name.startswith(("is_", "has_"))}
    assert public == YES.keys()
