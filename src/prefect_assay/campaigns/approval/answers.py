"""Answers to the questions of campaigns: recorded in the log, for exactly what was shown, then the run is woken.

The log's answer counts. A wake-up that fails is made up for by the sweep, which finds the answer there.
"""

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import PrefectException

from prefect_assay.blocks import AssayAccount, AssayCredentials
from prefect_assay.campaigns.approval.price import price_question_id
from prefect_assay.campaigns.runs.queries import read_runs, suspended_filter
from prefect_assay.campaigns.runs.states import resume_run, suspension_key, waits_for_input
from prefect_assay.campaigns.runs.tags import CAMPAIGN_TAG, LOOP_TAG
from prefect_assay.errors import Conflict, InputError, ServiceUnavailable, shorten
from prefect_assay.orders.ledger.campaign_log import (
    Answered,
    Asked,
    CampaignLog,
    StartedKind,
)
from prefect_assay.orders.next_action import APPROVE
from prefect_assay.orders.question import REJECT, Question

# The key of a run that shows the form of a price: the question, and its revision.
PRICE_KEY: Final = re.compile(r"price-(?P<question>[0-9a-f]+)-(?P<revision>\d+)")
_log = logging.getLogger("prefect_assay.flows")
_TAGS: Final = {StartedKind.CAMPAIGN: CAMPAIGN_TAG, StartedKind.LOOP: LOOP_TAG}


@dataclass(frozen=True)
class OpenQuestion:
    """An open question, and the log that it stands in."""

    log: CampaignLog
    asked: Asked

    @property
    def is_simulated(self) -> bool | None:
        """Whether the campaign's service is a simulation; None if the log does not say."""
        terms = self.log.state.terms
        return terms.simulated if terms else None


def questions_of(log: CampaignLog) -> list[OpenQuestion]:
    """The open questions of a campaign or a loop, oldest first; none once it is stopped or over."""
    state = log.read()
    return [OpenQuestion(log, asked) for asked in state.open_questions.values()] if state.is_open else []


def choose_question(
    questions: Iterable[OpenQuestion], question_id: str | None, revision: int | None
) -> OpenQuestion:
    """The question of this id and revision, or the only one.

    Raises:
        InputError: there is none, or several and none is named.
        Conflict: the question is in another revision by now.
    """
    known = list(questions)
    named = [one for one in known if question_id in {None, one.asked.question_id}]
    if not named:
        others = ", ".join(one.asked.question_id for one in known)
        which = f"question {question_id} is not open" if question_id else "there is no open question"
        raise InputError(f"{which}{f'; open are {others}' if others else ''}. Nothing was answered")
    if len(named) > 1:
        lines = "; ".join(f"{one.asked.question_id}: {one.asked.question.subject}" for one in named)
        raise InputError(f"several questions are open, so name one with --question: {lines}")
    asked = named[0].asked
    if revision is not None and revision != asked.revision:
        raise Conflict(
            f"question {asked.question_id} is in revision {asked.revision} by now, and you answer revision {revision}; "
            "nothing was recorded. Read it again"
        )
    return named[0]


def decision_of(question: Question, word: str | None) -> str:
    """The decision that a word names. `approve` also stands for the one decision of a question that is not a refusal.

    Raises:
        InputError: the question has no such decision.
    """
    others = [decision for decision in question.decisions if decision != REJECT]
    if word == APPROVE and APPROVE not in others and len(others) == 1:
        return others[0]
    if word not in question.decisions:
        raise InputError(
            f"the question takes {', '.join(question.decisions)}, and {word!r} is none of them; nothing was recorded"
        )
    return word


def answer_question(
    account: AssayAccount,
    log: CampaignLog,
    *,
    question_id: str,
    revision: int,
    decision: str,
    amount_cents: int | None,
    person: str,
    how: str,
) -> Answered:
    """Record a person's answer to exactly the question that was shown, and wake the campaign's run.

    `amount_cents` is the amount that was shown.

    Raises:
        InputError: there is no such question or decision, the amount is over the ceiling, or the campaign is canceled or
            over; nothing was recorded.
        Conflict: the question was answered, has expired, or was asked again with other figures; nothing was recorded.
        ServiceUnavailable: the service's clock cannot be read; nothing was recorded.
        ArchiveError: the archive cannot be read or written.
    """
    state = log.read()
    if not state.is_open:
        what = "is canceled" if state.stopped else "is over" if state.over else "was not started"
        raise InputError(f"{log.what} {log.name} {what}, so its questions are closed; nothing was recorded")
    answered = log.answer(
        question_id,
        revision,
        decision,
        amount_cents=amount_cents,
        answerer=person,
        how=how,
        now=_service_time(account.credentials),
        ceiling_cents=account.policy.answer_ceiling_cents,
    )
    wake_run(log)
    return answered


def _service_time(credentials: AssayCredentials) -> datetime:
    """The service's clock, by which questions are asked and expire."""
    with credentials.get_client() as client:
        client.targets.list(limit=1)
        now = client.service_time
    if now is None:
        raise ServiceUnavailable(
            "the service's answer has no Date, so whether the question has expired cannot be told; nothing was recorded. "
            "Try again, and ask the service's operator if this stays"
        )
    return now


def wake_run(log: CampaignLog) -> int:
    """Wake the suspended runs of a campaign whose question is answered; returns their number.

    Best effort: the sweep wakes what was not woken here.
    """
    try:
        with get_client(sync_client=True) as client:
            runs = read_runs(client, suspended_filter(tags=[_TAGS[log.what] + log.name]))
            return sum(resume_if_answered(client, log, run) for run in runs)
    except (httpx.HTTPError, PrefectException, RuntimeError) as error:
        _log.warning("The answer is recorded; the sweep will wake the run", exc_info=shorten(error))
        return 0


def resume_canceled(client: SyncPrefectClient, log: CampaignLog, run: FlowRun) -> None:
    """Resume a suspended run that continues although a campaign of it is canceled; a form about any other price stays open.

    The canceled campaign's form can no longer be answered. Its answer has no effect: the run meets the cancellation first.
    """
    form = PRICE_KEY.fullmatch(suspension_key(run))
    if not waits_for_input(run):
        resume_run(client, run.id)
    elif form is not None and form["question"] == price_question_id(log.name):
        resume_run(client, run.id, {"decision": REJECT, "decided_by": ""})


def resume_if_answered(client: SyncPrefectClient, log: CampaignLog, run: FlowRun) -> bool:
    """Resume a suspended run of a campaign; one that shows a form, only with the recorded answer to exactly its question.

    Returns True if this call has resumed it.
    """
    if not waits_for_input(run):
        return resume_run(client, run.id)
    form = PRICE_KEY.fullmatch(suspension_key(run))
    decided = log.read().decisions.get(form["question"]) if form else None
    if form is None or decided is None or decided[1].revision != int(form["revision"]):
        return False
    answered = decided[1]
    decision = answered.decision if answered.decision in {APPROVE, REJECT} else REJECT
    return resume_run(client, run.id, {"decision": decision, "decided_by": answered.answerer})
