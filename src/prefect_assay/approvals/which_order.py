"""Ask a person which experiment is the order, where neither its record nor the order's log proves it.

Nothing is ordered, confirmed or paid meanwhile: an order that is taken for another one would be placed and billed twice.
The caller writes the decision to the order's log, where every run of the order finds it.
"""

from prefect_assay.approvals.decision_form import request_decision
from prefect_assay.blocks import SpendingPolicy
from prefect_assay.errors import Candidate, OrderMismatch
from prefect_assay.models.question import REJECT, Question, QuestionKind

_NONE = "none"


def which_order(policy: SpendingPolicy, *, key: str, what: str, error: OrderMismatch) -> Candidate | None:
    """Return the experiment that a person has chosen, or None for none of them; suspends the run to ask.

    Raises:
        DecisionNeeded: this run cannot ask, because it was not started from a deployment.
        ApprovalRejected: a person ended the run.
        ApprovalExpired: the question expired.
    """
    candidates = {one.experiment_id: one for one in error.candidates}
    answer = request_decision(question_about(what, error), key=f"{key}-which", hours=policy.approval_hours)
    return candidates.get(answer.decision)


def question_about(what: str, error: OrderMismatch) -> Question:
    """The question as a record: the candidates with what does not prove them, each a choice by its id."""
    effects = {one.experiment_id: f"experiment {one.code} is this order" for one in error.candidates}
    return Question.of(
        QuestionKind.WHICH_EXPERIMENT,
        subject=f"Which experiment is {what}?",
        reason="The name of each has the order's key, and what the service shows does not prove that it is the order. Choose "
        "the one that is: to order again would be billed twice. Ask the laboratory if you are not certain.",
        facts={
            one.experiment_id: f"{one.code}: {one.why} {one.url or ''}".rstrip() for one in error.candidates
        },
        choices={
            **effects,
            _NONE: "each of them is another order's, and the run may order",
            REJECT: "the run ends, and nothing is ordered",
        },
    )
