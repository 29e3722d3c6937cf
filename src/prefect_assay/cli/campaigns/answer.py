"""`prefect-assay approve` and `reject`: show a campaign's open question, and record a person's answer to exactly that."""

from dataclasses import dataclass
from typing import Any

from prefect.client.orchestration import get_client

from prefect_assay.campaigns.approval.answers import (
    OpenQuestion,
    answer_question,
    choose_question,
    decision_of,
    questions_of,
)
from prefect_assay.campaigns.approval.purchase_text import purchase_rows
from prefect_assay.campaigns.approval.questions import estimate_of_order
from prefect_assay.campaigns.approval.terms import account_in
from prefect_assay.campaigns.stop import read_round_logs
from prefect_assay.campaigns.sweep.saved_blocks import account_of
from prefect_assay.cli.asking import parse_cents, require_consent, user_name
from prefect_assay.cli.campaigns.find import find_logs
from prefect_assay.cli.campaigns.purchase import show_rows
from prefect_assay.cli.output import TerminalConsole, make_plain_console, print_json
from prefect_assay.cli.prefect_api import api_errors, require_api
from prefect_assay.errors import Conflict, InputError
from prefect_assay.foreign_text import unquote_markdown
from prefect_assay.orders.ledger.campaign_log import Answered, CampaignLog
from prefect_assay.orders.question import REJECT, QuestionKind
from prefect_assay.service.models.billing import usd


@dataclass(frozen=True, kw_only=True)
class AnswerRequest:
    """What the options say. `amount` is in USD, as it is written."""

    decision: str
    question: str | None
    revision: int | None
    amount: str | None
    by: str | None
    archive: str | None
    yes: bool

    @property
    def amount_cents(self) -> int | None:
        """The amount in US cents."""
        return None if self.amount is None else parse_cents(self.amount, "--usd")


def show_and_answer(which: str, request: AnswerRequest, *, as_json: bool) -> None:
    """Show an open question of a campaign, a loop or what a run carries, and record the answer when it is confirmed.

    Raises:
        NotFound: nothing has this id.
        InputError: it asks nothing, it asks several things, or the question does not take this decision.
        Conflict: the question, its revision or its amount is another one than named; nothing was recorded.
        SystemExit: with 1, if the answer is not confirmed.
    """
    require_api()
    person = request.by or user_name()
    with api_errors(), get_client(sync_client=True) as client:
        logs = [
            log
            for named_log in find_logs(client, which, request.archive)
            for log in (named_log, *read_round_logs(named_log))
        ]
        questions = [question for log in logs for question in questions_of(log)]
        for log in logs:
            if request.question in log.state.decisions:
                log.require_open(log.state, str(request.question), request.revision or 0)
        chosen = choose_question(questions, request.question, request.revision)
        question = chosen.asked.question
        decision = decision_of(question, request.decision)
        amount_cents = _checked_amount(request, chosen, decision)
        if not as_json:
            show_question(chosen)
        if not request.yes:
            shown_cents = question.amount_cents if decision != REJECT else None
            require_consent(
                f"{decision}{'' if shown_cents is None else f' ({usd(shown_cents)})'}?",
                nothing="recorded",
                next_step="repeat the command with --question, --revision, --usd and --yes",
            )
        state = chosen.log.state
        answered = answer_question(
            account_of(client, state),
            chosen.log,
            question_id=chosen.asked.question_id,
            revision=chosen.asked.revision,
            decision=decision,
            amount_cents=amount_cents,
            person=person,
            how=f"prefect-assay {'reject' if decision == REJECT else 'approve'}",
        )
    if as_json:
        print_json({**question_as_json(chosen), "decision": decision, "by": answered.answerer})
    else:
        _print_answer(chosen.log, answered)


def _checked_amount(request: AnswerRequest, chosen: OpenQuestion, decision: str) -> int | None:
    """The amount that the question shows, which is sent; one that is named has to be the same."""
    asked = chosen.asked
    amount_cents, named_cents = asked.question.amount_cents, request.amount_cents
    if named_cents is not None and named_cents != amount_cents:
        raise Conflict(
            f"question {asked.question_id} is about {usd(amount_cents)}, and --usd names {usd(named_cents)}; nothing was "
            "recorded. Read it again"
        )
    if request.yes:  # nobody confirms what is shown
        lacking = [
            option
            for option, is_lacking in (
                ("--question", request.question is None),
                ("--revision", request.revision is None),
                ("--usd", amount_cents is not None and named_cents is None and decision != REJECT),
            )
            if is_lacking
        ]
        if lacking:
            raise InputError(
                f"with --yes, name exactly what you answer: {', '.join(lacking)}; nothing was recorded. `prefect-assay status "
                f"{chosen.log.name}` shows the question"
            )
    return amount_cents


def show_question(chosen: OpenQuestion) -> None:
    """Print a question: live or simulated, amount, facts and choices."""
    question, asked = chosen.asked.question, chosen.asked
    console = TerminalConsole(highlight=False)
    revision = f", revision {asked.revision}" if asked.revision > 1 else ""
    console.print(f"{chosen.log.what} {chosen.log.name}, question {asked.question_id}{revision}")
    console.print(f"\n{question.subject}\n{question.reason}\n")
    offered = chosen.log.state.offered
    if offered is not None and question.kind is QuestionKind.SPENDING and asked.order_key is None:
        show_rows("", purchase_rows(offered.purchase), stderr=False)
    else:
        console.print(f"  {account_in(chosen.log)}")
        if question.amount_cents is not None:
            console.print(f"  amount: {usd(question.amount_cents)} without VAT")
        for fact in question.facts:
            console.print(f"  {fact.name}: {unquote_markdown(fact.value)}")
        if estimate := estimate_of_order(chosen.log, asked.order_key):
            console.print(f"  estimate: {estimate}")
    console.print()
    for choice in question.choices:
        console.print(f"  {choice.decision}: {choice.effect}")
    console.print(f"\nTo be answered by {asked.expires_at:%Y-%m-%d %H:%M} UTC, by the service's clock.")


def _print_answer(log: CampaignLog, answered: Answered) -> None:
    make_plain_console().print(
        f"Recorded: {answered.decision}, by {answered.answerer}. The campaign goes on within minutes: prefect-assay status "
        f"{log.name}"
    )


def question_as_json(chosen: OpenQuestion) -> dict[str, Any]:
    """A question for programs; the amount in US cents without VAT."""
    asked = chosen.asked
    return {
        "kind": str(chosen.log.what),
        "campaign": chosen.log.name,
        "question": asked.question_id,
        "revision": asked.revision,
        "subject": asked.question.subject,
        "reason": asked.question.reason,
        "amount_cents": asked.question.amount_cents,
        "simulated": chosen.is_simulated,
        "facts": {fact.name: unquote_markdown(fact.value) for fact in asked.question.facts},
        "decisions": list(asked.question.decisions),
        "order": asked.order_key,
        "until": asked.expires_at.isoformat(),
    }
