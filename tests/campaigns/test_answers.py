"""Answers to a campaign's questions: to exactly what was shown, within the ceiling, by the service's clock."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect import flow
from prefect.client.schemas.objects import State
from prefect.input import keyset_from_paused_state
from prefect.states import Running, Suspended

from prefect_assay.campaigns.approval.answers import (
    answer_question,
    choose_question,
    decision_of,
    questions_of,
    resume_if_answered,
    wake_run,
)
from prefect_assay.campaigns.approval.price import PriceApproval
from prefect_assay.campaigns.runs.looks import Look
from prefect_assay.campaigns.runs.tags import CAMPAIGN_TAG
from prefect_assay.errors import Conflict, InputError, ServiceUnavailable
from prefect_assay.orders.ledger.campaign_log import CLOSED, EXPIRED
from prefect_assay.orders.question import Question, QuestionKind
from support.archive.memory_store import MemoryStore
from support.campaign_logs import WrittenCampaign


class Service:
    """An account whose service has this clock."""

    def __init__(self, now=None):
        self.service_time = now
        self.targets = SimpleNamespace(list=self._list)

    def get_client(self):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        """Nothing to close."""

    def _list(self, *, limit):
        assert limit == 1


NOW = datetime.now(UTC)


def campaign(store=None, **questions):
    written = WrittenCampaign(store or MemoryStore(), "", f"c-{uuid4().hex[:8]}")
    for name, cents in questions.items():
        written.ask(name, cents)
    return written


def answer(written, *, service=None, ceiling_cents=90_000, **changes):
    fields = {
        "question_id": "price",
        "revision": 1,
        "decision": "approve",
        "amount_cents": 90_000,
        "person": "Ada",
        "how": "a test",
    }
    policy = SimpleNamespace(answer_ceiling_cents=ceiling_cents)
    account = SimpleNamespace(credentials=service or Service(NOW), policy=policy)
    return answer_question(account, written.log, **fields | changes)


def test_an_answer_is_recorded_with_its_person_and_counts_for_exactly_the_question(prefect):
    written = campaign(price=90_000)
    answered = answer(written)
    assert (answered.decision, answered.answerer, answered.amount_cents) == ("approve", "Ada", 90_000)
    assert questions_of(written.log) == []
    with pytest.raises(Conflict, match="answered before: approve, by Ada"):
        answer(written, decision="reject")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"amount_cents": 89_999}, Conflict),
        ({"revision": 2}, Conflict),
        ({"ceiling_cents": 89_999}, InputError),
        ({"service": Service(NOW + timedelta(days=4))}, Conflict),
        ({"service": Service()}, ServiceUnavailable),
    ],
)
def test_what_was_not_shown_is_not_answered(changes, error):
    written = campaign(price=90_000)
    count = written.log.read().count
    with pytest.raises(error):
        answer(written, **changes)
    assert written.log.read().count == count


def test_the_questions_of_a_canceled_campaign_are_closed():
    written = campaign(price=90_000)
    written.log.stop("Grace", "a test")
    assert questions_of(written.log) == []
    with pytest.raises(InputError, match="is canceled, so its questions are closed"):
        answer(written)


def test_one_of_several_questions_has_to_be_named_with_the_revision_that_was_read():
    written = campaign(price=90_000)
    (only,) = questions_of(written.log)
    assert choose_question([only], None, None) == only
    assert choose_question([only], "price", 1) == only
    with pytest.raises(Conflict, match="in revision 1 by now, and you answer revision 2"):
        choose_question([only], "price", 2)
    with pytest.raises(InputError, match="question quote is not open; open are price"):
        choose_question([only], "quote", 1)
    with pytest.raises(InputError, match="there is no open question"):
        choose_question([], None, None)
    written.ask("quote", 1, number=1)
    with pytest.raises(InputError, match="several questions are open"):
        choose_question(questions_of(written.log), None, None)


def question(*decisions):
    return Question.of(
        QuestionKind.LEDGER,
        subject="Which?",
        reason="It is not known.",
        choices=dict.fromkeys((*decisions, "reject"), "it happens"),
    )


def test_approve_is_the_one_decision_that_is_no_refusal_and_never_one_of_several():
    assert decision_of(question("continue"), "approve") == "continue"
    assert decision_of(question("paid", "approve"), "approve") == "approve"
    assert decision_of(question("paid", "pay_again"), "pay_again") == "pay_again"
    for word in ("approve", "continue", None):
        with pytest.raises(InputError, match="takes paid, pay_again, reject"):
            decision_of(question("paid", "pay_again"), word)


def a_run(prefect, name, state):
    @flow(name="campaign")
    def carried():
        return None

    deployment = prefect.create_deployment(prefect.create_flow(carried), name="answers")
    run = prefect.create_flow_run_from_deployment(deployment, tags=[CAMPAIGN_TAG + name])
    prefect.set_flow_run_state(run.id, Running(), force=True)
    prefect.set_flow_run_state(run.id, state, force=True)
    return prefect.read_flow_run(run.id)


def waiting(prefect, name):
    return a_run(prefect, name, Suspended(timeout_seconds=600, pause_key=Look.after_success(NOW).new_key()))


def showing_price(prefect, name, question_id, revision):
    """A run that shows the form of its price, as `suspend_flow_run` leaves it."""
    state: State = Suspended(timeout_seconds=600, pause_key=f"price-{question_id}-{revision}")
    keyset = keyset_from_paused_state(state)
    state.state_details.run_input_keyset = {str(key): value for key, value in keyset.items()}
    run = a_run(prefect, name, state)
    PriceApproval.save(keyset, flow_run_id=run.id)
    return run


def test_an_answer_wakes_the_run_of_its_campaign_alone(prefect):
    written = campaign(abc1=90_000)
    run, other = waiting(prefect, written.name), waiting(prefect, "another")
    answer(written, question_id="abc1")
    assert prefect.read_flow_run(run.id).state.name == "Resuming"
    assert prefect.read_flow_run(other.id).state.name == "Suspended"


@pytest.mark.parametrize(("decision", "shown"), [("approve", "approve"), ("reject", "reject")])
def test_an_answer_by_command_submits_the_form_of_the_price(prefect, decision, shown):
    written = campaign(abc2=90_000)
    run = showing_price(prefect, written.name, "abc2", 1)
    answer(written, question_id="abc2", decision=decision)
    now = prefect.read_flow_run(run.id)
    assert now.state.name == "Resuming"
    values = PriceApproval.load(run.state.state_details.run_input_keyset, flow_run_id=run.id)
    assert (values.decision, values.decided_by) == (shown, "Ada")


def test_a_form_is_submitted_only_for_the_question_that_was_answered(prefect):
    written = campaign(abc3=90_000, abc4=1)
    asks_other = showing_price(prefect, written.name, "abc4", 1)
    asks_again = showing_price(prefect, written.name, "abc3", 2)
    by_hand = showing_price(prefect, written.name, "x", 1)
    answer(written, question_id="abc3")
    for run in (asks_other, asks_again, by_hand):
        assert prefect.read_flow_run(run.id).state.name == "Suspended"


@pytest.mark.parametrize("decision", [EXPIRED, CLOSED])
def test_a_question_that_nobody_has_answered_rejects_its_form(prefect, decision):
    written = campaign(abc5=90_000)
    run = showing_price(prefect, written.name, "abc5", 1)
    assert not resume_if_answered(prefect, written.log, run)
    if decision == EXPIRED:
        written.log.answer(
            "abc5", 1, EXPIRED, amount_cents=None, answerer="nobody", how="time", now=NOW + timedelta(days=9)
        )
    else:
        written.log.close_question("abc5", 1)
    assert resume_if_answered(prefect, written.log, run)
    values = PriceApproval.load(run.state.state_details.run_input_keyset, flow_run_id=run.id)
    assert values.decision == "reject"


def test_a_wake_up_that_fails_leaves_the_answer_recorded(monkeypatch):
    def refuse(**_):
        raise RuntimeError("no server")

    monkeypatch.setattr("prefect_assay.campaigns.approval.answers.get_client", refuse)
    written = campaign(price=90_000)
    assert answer(written).decision == "approve"
    assert wake_run(written.log) == 0
