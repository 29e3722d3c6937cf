"""Ask a person before a round of a loop is ordered."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from prefect_assay.approvals.questions import Question, answers, ask, form_text, topic_of
from prefect_assay.errors import ApprovalExpired, ApprovalRejected, ConfigurationError
from prefect_assay.runs import can_suspend
from prefect_assay.waiting import WaitsFor


class RoundApproval(Question):
    """The form. It has no decision that changes the designs: they are fixed when the question is asked."""

    decision: Literal["approve", "reject"] = Field(
        title="Decision",
        description="approve: order this round, within the spending policy. reject: end the loop; nothing is ordered.",
        json_schema_extra={"position": 0},
    )


def approve_round(*, key: str, what: str, figures: Mapping[str, str], hours: float) -> None:
    """Return when a person has approved the round; suspends until there is an answer.

    Raises:
        ConfigurationError: this run cannot ask, because it is not deployed.
        ApprovalRejected: a person ended the loop. Running it again asks again.
        ApprovalExpired: the question expired. A retry of the run asks again.
    """
    if not can_suspend():
        raise ConfigurationError(
            f"{what} needs a person's approval, and only a deployed run can ask; nothing was ordered. Start the flow "
            "from its deployment, or turn ask_each_round off"
        )
    question = f"{topic_of(WaitsFor.APPROVAL, key)}-round"
    given = answers(question)
    if not given:
        ask(
            RoundApproval,
            question=question,
            title=f"{what}: order it?",
            description=form_text(
                f"**{what}** is ready. Nothing is ordered before you approve.", figures, hours
            ),
            hours=hours,
        )
    last = given[0]
    if last.decision == "approve" and not last.late:
        return
    for answer in given:
        answer.discard()
    if last.late:
        raise ApprovalExpired(f"{what} was not approved in time; nothing was ordered")
    raise ApprovalRejected(f"a person ended the loop before {what}{last.note}")
