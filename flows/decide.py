"""`decide`: answer a campaign's question or cancel it from a form; the automation on Cancelled also starts it."""

from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final
from uuid import UUID

from prefect import flow
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun, State
from prefect.exceptions import ObjectNotFound
from prefect.states import Completed
from pydantic import Field

from prefect_assay.blocks import AssayAccount
from prefect_assay.campaigns.approval.answers import (
    answer_question,
    choose_question,
    decision_of,
    questions_of,
)
from prefect_assay.campaigns.runs.states import is_canceled_by_person
from prefect_assay.campaigns.runs.tags import CAMPAIGN_TAG, LOOP_TAG, tag_values
from prefect_assay.campaigns.stop import find_log, stop_log
from prefect_assay.campaigns.sweep.saved_blocks import account_of, saved_archives
from prefect_assay.designs.options import Usd, usd_to_cents
from prefect_assay.errors import AssayError, ConfigurationError, InputError, NotFound, shortened
from prefect_assay.flows import form
from prefect_assay.orders.ledger import known_archive_id
from prefect_assay.orders.ledger.campaign_log import CampaignLog, StartedKind
from prefect_assay.service import bounds

_HOW: Final = "the form of decide"
_BY_RUN: Final = "Cancel of run {name}"


class Action(StrEnum):
    """What to do."""

    APPROVE = "approve"
    REJECT = "reject"
    CHOOSE = "choose an experiment"
    PAID = "paid"
    PAY_AGAIN = "pay again"
    ACCEPT_ACCOUNT = "accept the account's change"
    CANCEL = "cancel the campaign"


_WORDS: Final = {
    Action.APPROVE: "approve",
    Action.REJECT: "reject",
    Action.PAID: "paid",
    Action.PAY_AGAIN: "pay_again",
    Action.ACCEPT_ACCOUNT: "approve",
}


@flow(name="decide", retries=0, retry_delay_seconds=0, timeout_seconds=600)
def decide(
    campaign_id: Annotated[bounds.Line | None, form.AT_ONCE, form.title_field("Campaign or loop")] = None,
    action: Annotated[Action | None, form.AT_ONCE, form.title_field("What to do")] = None,
    *,
    question_id: Annotated[bounds.Line | None, form.AT_ONCE, form.title_field("Question")] = None,
    revision: Annotated[
        int | None, Field(ge=1, le=1_000_000), form.AT_ONCE, form.title_field("Revision of the question")
    ] = None,
    amount_usd: Annotated[Usd | None, form.AT_ONCE, form.title_field("Exact amount (USD)")] = None,
    experiment: Annotated[bounds.Line | None, form.AT_ONCE, form.title_field("Which experiment")] = None,
    person: Annotated[bounds.Line | None, form.AT_ONCE, form.title_field("Your name")] = None,
    account: Annotated[AssayAccount | None, form.AT_ONCE, form.title_field("Account")] = None,
    canceled_run: Annotated[bounds.Line | None, form.AT_ONCE, form.title_field("Canceled run")] = None,
) -> State[str]:
    """Answer exactly one question of a campaign, or cancel a campaign or a loop.

    Args:
        campaign_id: the campaign or loop, as its run and its questions name it.
        action: the decision, or `cancel the campaign`.
        question_id: as the question's artifact names it. It may be left out where one question is open.
        revision: as the artifact names it. A question that was asked again with other figures is not answered.
        amount_usd: the amount that the question names, exactly. Needed to approve one with an amount.
        experiment: with `choose an experiment`, the id of the experiment, or `none`.
        person: who decides; kept in the ledger.
        account: only where the campaign's ledger has no saved account, or several archives have a campaign of this name.
        canceled_run: filled in by the automation: the run that somebody has canceled, and with it its campaign.
    """
    with get_client(sync_client=True) as client:
        if canceled_run is not None:
            text = _cancel_campaigns_of_run(client, UUID(canceled_run))
            return Completed(message=shortened(text), data=text)
        if campaign_id is None or action is None or person is None:
            raise InputError("say which campaign, what to do and who decides; nothing was done")
        place = _LoggedCampaign(client, _find_log(client, campaign_id, account), account)
        if action is Action.CANCEL:
            text = place.cancel(person, _HOW)
        else:
            word = experiment if action is Action.CHOOSE else _WORDS[action]
            text = place.answer(question_id, revision, word, usd_to_cents(amount_usd), person)
    return Completed(message=shortened(text), data=text)


@dataclass(frozen=True)
class _LoggedCampaign:
    """A campaign's log, and the account that is used where the log names none."""

    client: SyncPrefectClient
    log: CampaignLog
    account: AssayAccount | None = None

    def cancel(self, person: str, how: str) -> str:
        """Stop the campaign or loop by its log, and describe each order. Without the account, the sweep ends the orders at the service."""
        account: AssayAccount | None = None
        with suppress(ConfigurationError):
            account = self._load_account()
        report = stop_log(account, self.log, person=person, how=how)
        lines = [f"{order.name}: {order.line}" for order in report.orders]
        return "; ".join([f"{self.log.what} {self.log.name} is canceled", *lines, *report.problems])

    def answer(
        self,
        question_id: str | None,
        revision: int | None,
        decision_word: str | None,
        amount_cents: int | None,
        person: str,
    ) -> str:
        """Record a person's answer to one open question, and wake the run."""
        asked = choose_question(questions_of(self.log), question_id, revision).asked
        decision = decision_of(asked.question, decision_word)
        # A form shows no question: without its revision nobody can tell which figures its author has seen.
        if revision is None:
            raise InputError(
                f"name the revision of question {asked.question_id} that you have read; nothing was recorded"
            )
        answered = answer_question(
            self._load_account(),
            self.log,
            question_id=asked.question_id,
            revision=revision,
            decision=decision,
            amount_cents=amount_cents,
            person=person,
            how=_HOW,
        )
        return f"{answered.decision}, by {person}: {asked.question.subject}"

    def _load_account(self) -> AssayAccount:
        try:
            return account_of(self.client, self.log.read())
        except ConfigurationError:
            if self.account is None:
                raise
            return self.account


def _find_log(client: SyncPrefectClient, name: str, account: AssayAccount | None) -> CampaignLog:
    if account is not None:
        return find_log(account.archive, name)
    unread: list[AssayError] = []
    logs: dict[str | None, CampaignLog] = {}  # by the archive's id: two blocks may name one archive
    for _, saved in saved_archives(client):
        try:
            log = find_log(saved, name)
            logs.setdefault(known_archive_id(log.store, log.prefix), log)
        except NotFound:
            continue
        except AssayError as error:
            unread.append(error)
    if len(logs) > 1:
        places = ", ".join(log.store.location(log.prefix) for log in logs.values())
        raise InputError(f"several archives have {name} ({places}): select the account; nothing was done")
    if logs:
        return next(iter(logs.values()))
    if unread:
        raise unread[0]
    raise NotFound(
        f"no saved archive has a campaign or a loop {name!r}; `prefect-assay status` lists what there is"
    )


def _cancel_campaigns_of_run(client: SyncPrefectClient, run_id: UUID) -> str:
    """Cancel what a run has carried that a person has canceled; anything else that ended the run is ignored."""
    try:
        run = client.read_flow_run(run_id)
    except ObjectNotFound:
        return f"run {run_id} was deleted; the sweep starts another"
    if not is_canceled_by_person(run):
        return f"run {run.name} was not canceled by a person: its campaign goes on"
    logs = [log for log in _read_logs_carried_by(client, run) if _was_canceled_after_last_start(log, run)]
    if not logs:
        return f"run {run.name} carried nothing that is open"
    how = _BY_RUN.format(name=run.name)
    return ". ".join(_LoggedCampaign(client, log).cancel("a person", how) for log in logs)


def _read_logs_carried_by(client: SyncPrefectClient, run: FlowRun) -> list[CampaignLog]:
    """The logs of the loop that a run carries, else of its campaign: the rounds are canceled with their loop."""
    loops = tag_values(run.tags, LOOP_TAG)
    what, names = (
        (StartedKind.LOOP, loops) if loops else (StartedKind.CAMPAIGN, tag_values(run.tags, CAMPAIGN_TAG))
    )
    logs: list[CampaignLog] = []
    unread: list[AssayError] = []
    for _, archive in saved_archives(client):
        try:
            store = archive.get_store()
            of_archive = [CampaignLog(store, archive.prefix, name, what) for name in names]
            logs += [log for log in of_archive if log.read().started is not None]
        except AssayError as error:
            unread.append(error)
    if unread and not logs:
        raise unread[0]
    return logs


def _was_canceled_after_last_start(log: CampaignLog, run: FlowRun) -> bool:
    """Whether the run was canceled after the campaign was last started or reopened, so that its cancellation means the campaign."""
    state = log.read()
    if not state.needs_sweep or str(run.id) not in state.runs or run.state is None:
        return False
    opened = [record.at for record in log.records() if record.kind in {"started", "reopened"}]
    return run.state.timestamp > max(opened)
