"""Show any question of `models.question` as a form of a suspended run, and return the decision."""

from typing import Any, Literal, cast

from pydantic import Field, create_model

from prefect_assay.approvals.questions import FormAnswer, answers, ask, form_text, topic_of
from prefect_assay.approvals.questions import Question as Form
from prefect_assay.errors import ApprovalExpired, ApprovalRejected, DecisionNeeded
from prefect_assay.models.billing import usd
from prefect_assay.models.question import REJECT, Question
from prefect_assay.runs import can_suspend
from prefect_assay.waiting import WaitsFor


def request_decision(question: Question, *, key: str, hours: float) -> FormAnswer:
    """Return a person's answer to exactly this question; suspends a deployed run until there is one.

    `key` tells the questions of one run apart, such as an order key. A refusal or an expired question ends this
    execution, and a retry of the run asks again. Every other answer stays with the run, and counts again only for the
    same record.

    Raises:
        DecisionNeeded: this run cannot ask, because it was not started from a deployment.
        ApprovalRejected: a person ended the run.
        ApprovalExpired: nobody has answered in time.
    """
    if not can_suspend():
        raise DecisionNeeded(question)
    topic = f"{topic_of(WaitsFor.APPROVAL, key)}-{question.kind.replace('_', '-')}-{question.digest}"
    given = answers(topic)
    if not given:
        ask(
            decision_form(question),
            question=topic,
            title=question.subject,
            description=_describe(question, hours),
            hours=hours,
        )
    last = given[0]
    if last.decision != REJECT and not last.late:
        return last
    for answer in given:
        answer.discard()
    if last.late:
        raise ApprovalExpired(f"nobody has answered in time: {question.text}")
    raise ApprovalRejected(f"a person has ended the run{last.note}. The question was: {question.text}")


def decision_form(question: Question) -> type[Form]:
    """The form of a question: the choices are the values of `decision`, without a default."""
    effects = " ".join(f"{choice.decision}: {choice.effect.rstrip('.')}." for choice in question.choices)
    field = Field(title="Decision", description=effects, json_schema_extra={"position": 0})
    words: Any = cast("Any", Literal).__getitem__(question.decisions)  # the choices are known at run time
    return create_model("Decision", __base__=Form, decision=(words, field))


def _describe(question: Question, hours: float) -> str:
    amount = {} if question.amount_cents is None else {"amount": usd(question.amount_cents)}
    facts = amount | {fact.name: fact.value for fact in question.facts}
    return form_text(f"**{question.subject}** {question.reason}", facts, hours)
