"""Answers of a person: approvals, refusals, expired questions; the invoice decides about an uncertain payment."""

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import uuid4

import httpx
import pytest
from prefect.client.schemas.objects import StateType
from prefect.exceptions import Abort
from prefect.utilities.schema_tools.validation import validate

from prefect_assay.approvals import decision_form, questions, rounds
from prefect_assay.approvals import spending as approval
from prefect_assay.approvals import uncertain_payment as doubt
from prefect_assay.approvals.questions import FormAnswer
from prefect_assay.approvals.rounds import RoundApproval
from prefect_assay.approvals.spending import SpendingApproval, approve_spending
from prefect_assay.approvals.uncertain_payment import (
    PaymentDoubt,
    RepeatablePaymentDoubt,
    payment_decision,
)
from prefect_assay.errors import ApprovalExpired, ApprovalRejected, BudgetExceeded, DecisionNeeded
from prefect_assay.models.billing import Invoice
from prefect_assay.models.question import Question, QuestionKind
from prefect_assay.models.vocabulary import PaymentMethod
from prefect_assay.payments.reconciliation import PaymentStatus

NOW = datetime.now(UTC)


@pytest.fixture
def given(monkeypatch):
    """The answers in the run's record, the newest first."""
    record = []

    def answer(*, late=False, **values):
        record.insert(0, FormAnswer(uuid4(), f"k-{len(record)}", NOW, values, late))

    monkeypatch.setattr(FormAnswer, "discard", lambda answer: record.remove(answer))  # noqa: PLW0108 - binds it
    for module in (doubt, approval, rounds, decision_form):
        monkeypatch.setattr(module, "answers", lambda _question: list(record))
    for module in (approval, rounds, decision_form):
        monkeypatch.setattr(module, "can_suspend", lambda: True)
    monkeypatch.setattr(approval, "this_run", lambda: SimpleNamespace(id=uuid4()))
    monkeypatch.setattr(approval, "set_labels", lambda _run_id, _labels: None)
    answer.record = record
    return answer


def ask(status):
    facts = PaymentStatus(invoice=Invoice(id="inv_1", status=status, amount=100), entry=None)
    return payment_decision("key", "experiment", lambda: facts)


def test_without_a_question_there_is_no_decision(given):
    assert ask("open") is None


def test_a_question_outlasts_a_server_that_is_off_for_months(monkeypatch):
    """Prefect would end the run at the server's start, without a word about the question."""
    asked = []

    def suspend(_run, state):
        asked.append(state)
        raise Abort

    monkeypatch.setattr(questions, "this_run", lambda: SimpleNamespace(id=uuid4()))
    monkeypatch.setattr(questions, "add_tags", lambda _run_id, _tags: None)
    monkeypatch.setattr(questions, "suspend", suspend)
    with pytest.raises(Abort):
        questions.ask(PaymentDoubt, question="payment-k", title="t", description="d", hours=72)
    assert asked[0].state_details.pause_timeout - datetime.now(UTC) > timedelta(days=365)


@pytest.mark.parametrize("decision", ["paid", "pay_again"])
def test_a_decision_counts_once(given, decision):
    given(decision=decision)
    assert ask("open") == decision
    assert ask("open") is None


@pytest.mark.parametrize(
    ("late", "decision", "error"),
    [
        (False, "stop", ApprovalRejected),
        (True, "stop", ApprovalExpired),
        (True, "pay_again", ApprovalExpired),
    ],
)
def test_a_refusal_and_an_expired_question_end_the_run_unless_the_invoice_is_paid(
    given, late, decision, error
):
    given(decision=decision, late=late)
    with pytest.raises(error, match="its invoice is open, and money may have moved"):
        ask("open")
    given(decision=decision, late=late)
    assert ask("paid") == "paid"


def test_paying_again_is_not_offered_where_it_could_pay_twice():
    schema = PaymentDoubt.model_json_schema()
    assert schema["properties"]["decision"]["enum"] == ["paid", "stop"]


@pytest.mark.parametrize(
    ("method", "repeatable", "form"),
    [
        (PaymentMethod.X402_EXACT, True, RepeatablePaymentDoubt),
        (PaymentMethod.X402_EXACT, False, PaymentDoubt),
        (PaymentMethod.MPP_SPT, True, PaymentDoubt),
        (PaymentMethod.ASYNC_INVOICE, True, PaymentDoubt),
    ],
)
def test_paying_again_is_offered_on_the_rail_whose_nonce_excludes_a_second_settlement(
    monkeypatch, method, repeatable, form
):
    asked = []
    monkeypatch.setattr(doubt, "ask", lambda kind, **_: asked.append(kind))
    doubt.ask_about_payment(
        SimpleNamespace(approval_hours=1),
        method,
        key="k",
        what="It",
        why="lost",
        status=PaymentStatus(),
        repeatable=repeatable,
    )
    assert asked == [form]


def spend(amount, cap=100, **changes):
    policy = SimpleNamespace(approval_hours=1)
    return approve_spending(
        policy, key="k", what="It", amount_cents=amount, cap_cents=cap, cap_name="cap", **changes
    )


@pytest.mark.parametrize(("decision", "most"), [("approve", 101), ("change_cap", 500)])
def test_an_approval_applies_to_later_executions(given, decision, most):
    given(decision=decision, cap_cents=500, decided_by="Ada")
    allowed = spend(101)
    assert allowed.cents == most
    assert allowed.approver.startswith("Ada, in flow run ")
    assert given.record  # it holds for the next executions


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"decision": "reject", "note": "no"}, ApprovalRejected),
        ({"decision": "change_cap", "cap_cents": 100}, ApprovalRejected),
        ({"decision": "change_cap"}, ApprovalRejected),
        ({"decision": "approve", "cap_cents": 100}, ApprovalRejected),
        ({"decision": "approve", "late": True}, ApprovalExpired),
        ({"decision": "change_cap", "cap_cents": 500, "late": True}, ApprovalExpired),
    ],
)
def test_a_refusal_ends_one_execution_only(given, values, error):
    given(**values)
    with pytest.raises(error, match=r"at 1\.01 USD.*nothing was ordered") as raised:
        spend(101)
    assert given.record == []
    assert ("(no)" in raised.value.message) is ("note" in values)


def test_a_changed_cap_covers_no_other_amount_that_is_asked_about_for_a_reason(given, monkeypatch):
    given(decision="change_cap", cap_cents=500)
    answered = f"{approval.topic_of(approval.WaitsFor.APPROVAL, 'k')}-200"
    monkeypatch.setattr(
        approval, "answers", lambda asked: list(given.record) if answered.startswith(asked) else []
    )
    assert spend(200).cents == 500
    assert spend(300).cents == 500
    assert spend(200, because="of the policy").cents == 500
    with pytest.raises(DecisionNeeded, match=r"costs 0\.00 USD"):
        spend(0, because="it is a quote of nothing", may_ask=False)


def test_a_run_that_cannot_ask_needs_an_earlier_answer(given):
    with pytest.raises(BudgetExceeded, match=r"costs 1.01 USD, the cap is 1.00 USD; it stands"):
        spend(101, may_ask=False, otherwise="it stands")
    with pytest.raises(DecisionNeeded, match=r"costs 0.99 USD .* because of the policy") as raised:
        spend(99, may_ask=False, because="of the policy", bought={"designs": "8"})
    assert (raised.value.question.amount_cents, raised.value.question.facts[0].value) == (99, "8")
    given(decision="approve")
    assert spend(101, may_ask=False).approver.startswith("a person who gave no name, in flow run ")
    assert (spend(100).cents, spend(100).approver) == (100, "within 1.00 USD")


@pytest.mark.parametrize(
    ("amount", "cap", "because", "says"),
    [
        (
            87_600,
            40_000,
            None,
            "**It** costs **876.00 USD** without VAT, 476.00 USD over the cap, 400.00 USD.",
        ),
        (
            87_600,
            87_600,
            "quotes are asked about",
            "within the cap, 876.00 USD. You are asked because quotes are asked about.",
        ),
        (2, 1, "it may exist", "0.01 USD over the cap, 0.01 USD. You are asked because it may exist."),
    ],
)
def test_the_form_compares_the_price_with_the_cap_that_counts(given, monkeypatch, amount, cap, because, says):
    asked = []
    monkeypatch.setattr(
        approval, "ask", lambda form, **shown: asked.append(shown) or given(decision="approve")
    )
    monkeypatch.setattr(approval, "emit", lambda fact: None)
    monkeypatch.setattr(approval, "_approved", lambda *_: None)
    bought = {
        "designs": "8, 45 to 60 residues",
        "assay": "affinity by bli against `EGFR`",
        "paid": "by a person",
    }
    spend(amount, cap, because=because, bought=bought, figures={"ordered already": "5.00 USD"})
    (shown,) = asked
    assert says in shown["description"]
    assert approval.asked_cents(f"{shown['question']}-until-1-0f") == amount
    lines = shown["description"].splitlines()
    names = [line[2:].partition(":")[0] for line in lines if line.startswith("- ")]
    assert names == ["designs", "assay", "paid", "ordered already"]
    assert shown["title"].endswith(": 8, 45 to 60 residues, affinity by bli against EGFR"), (
        "for the notification"
    )


@pytest.mark.parametrize("form", [SpendingApproval, RoundApproval, PaymentDoubt, RepeatablePaymentDoubt])
def test_the_decision_comes_first_and_no_field_is_hidden_behind_a_switch(form):
    fields = form.model_json_schema()["properties"]
    assert min(fields, key=lambda name: fields[name]["position"]) == "decision"
    assert not [name for name, field in fields.items() if "anyOf" in field]
    answer = {"decision": "reject" if "reject" in fields["decision"]["enum"] else "stop", "note": None}
    assert validate(answer, form.model_json_schema()) == []


def test_only_expired_questions_of_this_package_are_answered():
    woken = []

    class Client:
        def resume_flow_run(self, run_id, run_input):
            woken.append((run_id, run_input["decision"]))
            return SimpleNamespace(status="ACCEPT" if run_id != "gone" else "ABORT")

    def run(name, key):
        return SimpleNamespace(id=name, state=SimpleNamespace(state_details=SimpleNamespace(pause_key=key)))

    then, later = int(NOW.timestamp()) - 1, int(NOW.timestamp()) + 60
    runs = [
        run("over", f"approve-0a-100-until-{then}-{uuid4().hex}"),
        run("doubt", f"doubt-0a-until-{then}-{uuid4().hex}"),
        run("gone", f"approve-0a-100-until-{then}-{uuid4().hex}"),
        run("time", f"approve-0a-100-until-{later}-{uuid4().hex}"),
        run("other", "1"),
    ]
    assert questions.answer_expired(Client(), runs, NOW) == ["over", "doubt"]
    assert woken == [("over", "reject"), ("doubt", "stop"), ("gone", "reject")]


def test_a_run_that_was_killed_before_its_form_was_stored_asks_again():
    """Prefect 3.9.1 deletes what is stored before the suspension, so the form comes after it."""
    scheduled = []

    class Client:
        def read_flow_run_input(self, run_id, key):
            if run_id == "killed" or (run_id == "half" and key.endswith("-description")):
                request = httpx.Request("GET", f"http://prefect.test/{key}")
                raise httpx.HTTPStatusError(
                    "404", request=request, response=httpx.Response(404, request=request)
                )
            return "{}"

        def set_flow_run_state(self, run_id, state, *, force):
            scheduled.append((run_id, state.type, force))
            return SimpleNamespace(status="ACCEPT")

    def run(name, minutes=5.0, key=None):
        key = key or f"approve-0a-100-until-{int(NOW.timestamp()) + 60}-{uuid4().hex}"
        keyset = {word: f"suspended-{key}-{word}" for word in ("schema", "response", "description")}
        state = SimpleNamespace(
            timestamp=NOW - timedelta(minutes=minutes),
            state_details=SimpleNamespace(pause_key=key, run_input_keyset=keyset),
        )
        return SimpleNamespace(id=name, state=state)

    runs = [
        run("killed"),
        run("half"),
        run("asks"),
        run("killed", minutes=0.1),
        run("killed", key="another's"),
    ]
    assert questions.ask_again(Client(), runs, NOW) == ["killed", "half"]
    assert scheduled == [(name, StateType.SCHEDULED, False) for name in ("killed", "half")]


@pytest.mark.parametrize(
    ("question", "minutes", "note", "events"),
    [
        ("approve-ab-100", 60, None, [("assay.approval.answered", "spending", "approve")]),
        ("approve-ab-100", -1, None, [("assay.approval.expired", "spending", None)]),
        ("doubt-ab", 60, "Nobody has answered in time.", [("assay.approval.expired", "payment", None)]),
    ],
)
def test_an_answer_and_the_lack_of_one_are_reported(monkeypatch, question, minutes, note, events):
    until = int((NOW + timedelta(minutes=minutes)).timestamp())
    entry = SimpleNamespace(
        key=f"suspended-{question}-until-{until}-{'0' * 32}-response",
        value=json.dumps({"decision": "approve", "note": note, "decided_by": "Ada"}),
        created=NOW,
    )

    class Client(SimpleNamespace):
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    sent = []
    run = SimpleNamespace(flow_run=SimpleNamespace(id=uuid4()))
    monkeypatch.setattr(questions, "FlowRunContext", SimpleNamespace(get=lambda: run))
    monkeypatch.setattr(
        questions, "get_client", lambda **_: Client(filter_flow_run_input=lambda **_: [entry])
    )
    monkeypatch.setattr(questions, "emit", sent.append)
    assert len(questions.answers(question)) == 1
    assert [(fact.event, fact.about, getattr(fact, "decision", None)) for fact in sent] == events
    assert "Ada" not in str(sent)
    assert sent[0].approval == f"{question}-until-{until}-{'0' * 32}"


NAME = "8254c329a92850f6d539"  # of the key k


def test_each_question_is_asked_under_the_name_by_which_its_answer_is_found(given, monkeypatch):
    """Suspended runs and their answers are found by these names, which never change."""
    read, asked = [], []
    for module in (approval, rounds, doubt):
        monkeypatch.setattr(module, "answers", lambda question: read.append(question) or [])
        monkeypatch.setattr(module, "ask", lambda form, **shown: asked.append((form, shown)))
    monkeypatch.setattr(approval, "emit", lambda fact: None)
    monkeypatch.setattr(approval, "_approved", lambda *_: None)
    spend(101)
    with pytest.raises(IndexError):  # `ask` does not return
        rounds.approve_round(key="k", what="Round 2", figures={"designs": "96"}, hours=1.5)
    payment_decision("k", "E-1", lambda: None)
    doubt.ask_about_payment(
        SimpleNamespace(approval_hours=72),
        PaymentMethod.X402_EXACT,
        key="k",
        what="E-1",
        why="No answer came.",
        status=PaymentStatus(invoice=Invoice(id="inv_1", status="open", amount=100), entry=None),
        repeatable=True,
    )
    names = [f"approve-{NAME}-101", f"approve-{NAME}-round", f"doubt-{NAME}"]
    assert read == [f"approve-{NAME}", *names]
    assert [shown["question"] for _, shown in asked] == names
    assert [form for form, _ in asked] == [SpendingApproval, RoundApproval, RepeatablePaymentDoubt]
    for words, (_, shown) in zip(("1 hours", "1.5 hours", "No answer came."), asked, strict=True):
        assert words in shown["description"]
    assert "- designs: 96" in asked[1][1]["description"]
    assert "- invoice amount: 1.00 USD" in asked[2][1]["description"]


@pytest.mark.parametrize(
    ("values", "error", "text"),
    [
        (
            {"decision": "approve", "late": True},
            ApprovalExpired,
            "Round 2 was not approved in time; nothing was ordered",
        ),
        ({"decision": "reject"}, ApprovalRejected, "a person ended the loop before Round 2"),
        (
            {"decision": "reject", "note": "no"},
            ApprovalRejected,
            "a person ended the loop before Round 2 (no)",
        ),
    ],
)
def test_a_refused_round_is_asked_about_again(given, values, error, text):
    given(decision="reject")
    given(**values)
    with pytest.raises(error) as raised:
        rounds.approve_round(key="k", what="Round 2", figures={}, hours=1)
    assert (raised.value.message, given.record) == (text, [])


QUESTION = Question.of(
    QuestionKind.WHICH_EXPERIMENT,
    subject="Which experiment is c 1/2?",
    reason="The answer was lost.",
    facts={"SIM-001-002": "its sequences are not shown"},
    choices={"SIM-001-002": "it is this order.", "none": "the run may order", "reject": "nothing is ordered"},
    amount_cents=500,
)


def decide():
    return decision_form.request_decision(QUESTION, key="k", hours=72)


def test_a_record_becomes_a_form_with_its_choices_and_facts(given, monkeypatch):
    asked = []
    monkeypatch.setattr(decision_form, "ask", lambda form, **shown: asked.append((form, shown)))
    with pytest.raises(IndexError):  # `ask` does not return
        decide()
    ((form, shown),) = asked
    schema = form.model_json_schema()
    assert schema["properties"]["decision"]["enum"] == ["SIM-001-002", "none", "reject"]
    assert "decision" in schema["required"]
    assert "SIM-001-002: it is this order. none: the run may order." in str(schema)
    assert validate({"decision": "reject", "note": None}, schema) == []
    assert validate({"decision": "approve"}, schema)
    assert shown["question"] == f"approve-{NAME}-which-experiment-{QUESTION.digest}"
    assert "- amount: 5.00 USD\n- SIM-001-002: its sequences are not shown" in shown["description"]


def test_a_decision_stays_and_a_refusal_ends_one_execution(given):
    given(decision="none")
    assert decide().decision == decide().decision == "none"
    given(decision="reject", note="no")
    with pytest.raises(ApprovalRejected, match=r"\(no\).*Which experiment"):
        decide()
    assert given.record == []
    given(decision="none", late=True)
    with pytest.raises(ApprovalExpired, match="Which experiment"):
        decide()


def test_a_run_without_a_deployment_ends_with_the_question(given, monkeypatch):
    monkeypatch.setattr(decision_form, "can_suspend", lambda: False)
    given(decision="none")
    with pytest.raises(DecisionNeeded, match="SIM-001-002, none, reject") as raised:
        decide()
    assert raised.value.question == QUESTION
