"""The record of a decision, without anything that asks."""

import pickle

import pytest
from pydantic import ValidationError

from prefect_assay.errors import DecisionNeeded
from prefect_assay.orders.question import Question, QuestionKind

CHOICES = {"approve": "the quote is accepted", "reject": "nothing is accepted"}


def question(**changes):
    facts = {"approved": "219.00 USD", "quote": "2.19 USD"}
    values = {"subject": "The quote is low.", "reason": "Ask why.", "facts": facts, "choices": CHOICES}
    return Question.of(QuestionKind.SPENDING, **{**values, "amount_cents": 219, **changes})


def test_a_question_is_frozen_and_keeps_its_facts_in_order():
    asked = question()
    assert [fact.name for fact in asked.facts] == ["approved", "quote"]
    with pytest.raises(ValidationError):
        asked.subject = "another"


@pytest.mark.parametrize("choices", [{"approve": "yes", "none": "no"}, {"reject": "no"}])
def test_every_question_has_a_choice_besides_the_refusal(choices):
    with pytest.raises(ValidationError):
        question(choices=choices)


@pytest.mark.parametrize(
    "changes", [{"amount_cents": 220}, {"facts": {"quote": "2.20 USD"}}, {"choices": CHOICES | {"x": "y"}}]
)
def test_an_answer_belongs_to_exactly_what_was_shown(changes):
    assert question().digest == question().digest != question(**changes).digest


def test_the_error_names_question_facts_and_next_step_and_survives_pickling():
    error = pickle.loads(pickle.dumps(DecisionNeeded(question())))
    for text in ("The quote is low.", "quote: 2.19 USD", "from its deployment", "approve, reject"):
        assert text in error.message
    assert error.question == question()
