"""Ask a person which experiment is the order, where neither its record nor the order's log proves it.

Nothing is ordered, confirmed or paid meanwhile: an order that is taken for another one would be placed and billed twice.
The decision is not kept with the run: the caller writes it to the order's log, where every run of the order finds it.
"""

from typing import Literal

from pydantic import Field

from prefect_assay.approvals.questions import Question, answers, ask, form_text, topic_of
from prefect_assay.blocks import SpendingPolicy
from prefect_assay.errors import ApprovalExpired, ApprovalRejected, Candidate, OrderMismatch
from prefect_assay.models.identifiers import normalize_id
from prefect_assay.waiting import WaitsFor


class WhichOrder(Question):
    """The form: which experiment, if any, is the order."""

    decision: Literal["adopt", "none", "reject"] = Field(
        title="Decision",
        description="adopt: the experiment is this order. none: none of them is, and the run may order. reject: end this "
        "run; nothing is ordered.",
        json_schema_extra={"position": 0},
    )
    experiment: str | None = Field(
        default=None,
        max_length=200,
        title="Experiment",
        description="The code of the experiment that is the order; needed to adopt one of several.",
        json_schema_extra={"position": 1},
    )


def which_order(policy: SpendingPolicy, *, key: str, what: str, error: OrderMismatch) -> Candidate | None:
    """The experiment that a person has chosen, or None for none of them; suspends the run to ask.

    Raises:
        ApprovalRejected: a person ended the run.
        ApprovalExpired: the question expired.
    """
    question = f"{topic_of(WaitsFor.APPROVAL, f'{key}-which')}-order"
    given = answers(question)
    for answer in given:
        answer.discard()
    if given and given[0].late:
        raise ApprovalExpired(f"nobody said in time which experiment is {what}; nothing was ordered")
    if given and given[0].decision == "reject":
        raise ApprovalRejected(f"a person ended {what}{given[0].note}; nothing was ordered")
    if given and given[0].decision == "none":
        return None
    named = str(given[0].values.get("experiment") or "").strip() if given else ""
    chosen = [
        one
        for one in error.candidates
        if not named or named == one.code or normalize_id(named) == one.experiment_id
    ]
    if given and len(chosen) == 1:
        return chosen[0]
    return ask(
        WhichOrder,
        question=question,
        title=f"Which experiment is {what}?",
        description=form_text(
            f"**Is this {what}?** Its name has the order's key, and what the service shows of it does not prove it. If it is "
            "the order, adopt it: ordering again would be billed twice. Ask the laboratory if you are not certain.",
            {one.url or one.code: f"{one.code}: {one.why}" for one in error.candidates},
            policy.approval_hours,
        ),
        hours=policy.approval_hours,
    )
