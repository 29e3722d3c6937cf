"""Ask a person before money is spent: a suspended run with a form in the Prefect UI that shows the figures."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import Field

from prefect_assay.approvals.questions import FormAnswer, answers, ask, form_text, topic_of
from prefect_assay.approvals.questions import Question as Form
from prefect_assay.blocks import SpendingPolicy
from prefect_assay.errors import ApprovalExpired, ApprovalRejected, BudgetExceeded, DecisionNeeded
from prefect_assay.events import emit, kinds
from prefect_assay.models.billing import usd
from prefect_assay.models.question import REJECT, Question, QuestionKind
from prefect_assay.runs import can_suspend
from prefect_assay.runs.suspend import this_run
from prefect_assay.runs.tags import CAP_LABEL, set_labels
from prefect_assay.waiting import WaitsFor

_QUESTION: Final = re.compile(rf"{WaitsFor.APPROVAL}-[0-9a-f]{{20}}-(?P<cents>\d+)-until-")


@dataclass(frozen=True)
class Approval:
    """What may be spent, in US cents, and the rule or the person that approved it."""

    cents: int
    approver: str
    by_person: bool = False


class SpendingApproval(Form):
    """The form."""

    decision: Literal["approve", "reject", "change_cap"] = Field(
        title="Decision",
        description="approve: exactly the amount shown. reject: nothing. change_cap: go on under the cap below.",
        json_schema_extra={"position": 0},
    )
    cap_cents: int | None = Field(
        default=None,
        ge=0,
        title="New cap for this run (cents)",
        description="With change_cap: what this run may spend without asking again. Less than the price rejects.",
        json_schema_extra={"position": 1},
    )


def approve_spending(
    policy: SpendingPolicy,
    *,
    key: str,
    what: str,
    amount_cents: int,
    cap_cents: int,
    cap_name: str,
    bought: Mapping[str, str] | None = None,
    figures: Mapping[str, str] | None = None,
    because: str | None = None,
    may_ask: bool = True,
    otherwise: str = "nothing was ordered",
) -> Approval:
    """Return what may be spent: the amount if it is within the cap, else what a person approved.

    An earlier approval of the same amount under the same `key` applies, and so does an earlier changed cap.

    Args:
        policy: how long the question stays open.
        key: identifies the question in its run.
        what: what is paid for.
        amount_cents: the price without VAT.
        cap_cents: the limit below which nobody is asked.
        cap_name: what the form calls the cap.
        bought: what is bought and for whom: the first lines of the form.
        figures: more lines of the form.
        because: a reason to ask even within the cap.
        may_ask: without it only an earlier answer counts.
        otherwise: what happens without an approval.

    Raises:
        BudgetExceeded: the amount is over the cap, and this run cannot ask because it is not deployed.
        DecisionNeeded: the same, for another reason than the cap (`because`).
        ApprovalRejected: a person declined, or approved less than the price. A retry of the run asks again.
        ApprovalExpired: the question expired. A retry of the run asks again.
    """
    if amount_cents <= cap_cents and because is None:
        return Approval(amount_cents, f"within {usd(cap_cents)}")
    topic = topic_of(WaitsFor.APPROVAL, key)
    question = f"{topic}-{amount_cents}"
    # A cap that was changed for another amount says nothing about a price that is asked about for another reason.
    changed = _changed_cap(topic if because is None else question) if can_suspend() else None
    if changed is not None and amount_cents <= changed.cents:
        return changed
    given = answers(question) if can_suspend() else []
    if not given:
        asks = may_ask and can_suspend()
        if amount_cents > cap_cents:
            emit(
                kinds.BudgetReached(
                    key=key, what=what, amount_cents=amount_cents, cap_cents=cap_cents, asks=asks
                )
            )
        if not asks:
            if because is not None:
                raise DecisionNeeded(
                    _question(what, amount_cents, because, {**(bought or {}), **(figures or {})})
                )
            raise BudgetExceeded(_cannot_ask(what, amount_cents, cap_cents, otherwise))
        if changed is not None:
            cap_cents, cap_name = changed.cents, "cap that a person set for this run"
        price = f"**{what}** costs **{usd(amount_cents)}** without VAT"
        set_labels(this_run().id, {CAP_LABEL: usd(cap_cents) if amount_cents > cap_cents else ""})
        ask(
            SpendingApproval,
            question=question,
            title=_title(what, amount_cents, bought or {}),
            description=form_text(
                f"{price}, {_compared(amount_cents, cap_cents, cap_name, because)} Nothing is spent before you approve.",
                {**(bought or {}), **(figures or {})},
                policy.approval_hours,
            ),
            hours=policy.approval_hours,
        )
    return _approved(given, what, amount_cents, otherwise)


def _title(what: str, amount_cents: int, bought: Mapping[str, str]) -> str:
    """One line for the run's state, the event and the notification; without markup and links."""
    about = ", ".join(bought[name].replace("`", "") for name in ("designs", "assay") if name in bought)
    return f"{what} costs {usd(amount_cents)}{f': {about}' if about else ''}"


def asked_cents(key: str) -> int | None:
    """The amount that a question of `approve_spending` asks about, from its key; None for any other question."""
    match = _QUESTION.match(key)
    return int(match["cents"]) if match else None


def _cannot_ask(what: str, amount_cents: int, cap_cents: int, otherwise: str) -> str:
    return (
        f"{what} costs {usd(amount_cents)}, the cap is {usd(cap_cents)}; {otherwise}. "
        "Raise the cap in the spending policy, or start the flow from its deployment to be asked"
    )


def _question(what: str, amount_cents: int, because: str, facts: Mapping[str, str]) -> Question:
    """The record of a question that is asked for another reason than a cap."""
    return Question.of(
        QuestionKind.SPENDING,
        subject=f"{what} costs {usd(amount_cents)} without VAT.",
        reason=f"You have to approve it because {because}.",
        facts=facts,
        choices={
            "approve": "exactly the amount shown may be spent",
            REJECT: "nothing is spent",
            "change_cap": "this run may spend up to a new cap",
        },
        amount_cents=amount_cents,
    )


def _compared(amount_cents: int, cap_cents: int, cap_name: str, because: str | None) -> str:
    over = amount_cents - cap_cents
    place = f"{usd(over)} over" if over > 0 else "within"
    reason = f" You are asked because {because}." if because else ""
    return f"{place} the {cap_name}, {usd(cap_cents)}.{reason}"


def _changed_cap(topic: str) -> Approval | None:
    """The cap that a person set for this run and topic, whatever the amount in question was."""
    for answer in answers(topic):
        cap = answer.values.get("cap_cents")
        if answer.decision == "change_cap" and not answer.late and cap is not None:
            return Approval(int(cap), answer.given_by, by_person=True)
    return None


def _approved(given: list[FormAnswer], what: str, amount_cents: int, otherwise: str) -> Approval:
    """The newest answer counts. A refusal is discarded: it ends this execution, and not every retry."""
    last = given[0]
    # With "approve", a cap that is given adds nothing; one below the amount contradicts the approval.
    cap = last.values.get("cap_cents")
    if last.decision == "approve" and not last.late and (cap is None or int(cap) >= amount_cents):
        return Approval(amount_cents, last.given_by, by_person=True)
    for answer in given:
        answer.discard()
    if last.late:
        raise ApprovalExpired(f"{what} was not approved in time at {usd(amount_cents)}; {otherwise}")
    raise ApprovalRejected(f"{what} was not approved at {usd(amount_cents)}{last.note}; {otherwise}")
