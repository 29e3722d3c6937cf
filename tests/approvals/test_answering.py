"""Submitting a form from the command line: once, in time, and never to a question that its author has not seen."""

import json
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import uuid4

import httpx
import pytest
from prefect.client.schemas.objects import FlowRun
from prefect.client.schemas.responses import SetStateStatus
from prefect.states import Completed, Suspended

from prefect_assay.approvals import answering
from prefect_assay.approvals.answering import read_question, submit_answer
from prefect_assay.approvals.questions import deadline_of
from prefect_assay.errors import ApprovalExpired, Conflict, InputError, InvalidRequest, OutcomeUnknown

APPROVE = {"decision": "approve", "decided_by": "Ada"}


def key_of(question="approve-0a1b-500", hours=1.0):
    until = int((datetime.now(UTC) + timedelta(hours=hours)).timestamp())
    return f"{question}-until-{until}-{uuid4().hex}"


class Server:
    """Prefect's server as far as a form goes; `faults` are raised by the next resumes, before or after they work."""

    def __init__(self, key):
        self.run_id = uuid4()
        self.answered = []
        self.stored = {}
        self.faults = []
        self.ask(key)

    def ask(self, key):
        self.state = Suspended(timeout_seconds=60, pause_key=key)
        self.state.state_details.run_input_keyset = {
            word: f"suspended-{key}-{word}" for word in ("description", "response", "schema")
        }

    def run(self):
        return FlowRun(id=self.run_id, flow_id=uuid4(), name="c 1/1", state=self.state)

    def read_flow_run(self, _run_id):
        return self.run()

    def read_flow_run_input(self, _run_id, key):
        schema = {"properties": {"decision": {"enum": ["approve", "reject"]}}}
        return json.dumps(schema if key.endswith("-schema") else "costs **5.00 USD**")

    def filter_flow_run_input(self, *, key_prefix, **_):
        return [SimpleNamespace(value=json.dumps(v)) for k, v in self.stored.items() if k == key_prefix]

    def resume_flow_run(self, _run_id, run_input):
        fault = self.faults.pop(0) if self.faults else None
        if fault == "collision":
            self.answer(run_input | {"decided_by": "Grace"})
        if fault in {"busy", "collision"}:
            request = httpx.Request("POST", "http://prefect.test/resume")
            response = httpx.Response(503 if fault == "busy" else 500, request=request)
            raise httpx.HTTPStatusError(fault, request=request, response=response)
        if not self.state.is_paused():
            return SimpleNamespace(status=SetStateStatus.ABORT, details=None)
        if run_input["decision"] not in {"approve", "reject"}:
            return SimpleNamespace(status=SetStateStatus.REJECT, details=SimpleNamespace(reason="not one of"))
        self.answer(run_input)
        if callable(fault):
            fault()
            raise httpx.ReadTimeout("the answer is lost")
        return SimpleNamespace(status=SetStateStatus.ACCEPT, details=None)

    def answer(self, values):
        self.answered.append((self.state.state_details.pause_key, values))
        self.stored[self.state.state_details.run_input_keyset["response"]] = values
        self.state = Completed()


@pytest.fixture
def server(monkeypatch):
    server = Server(key_of())

    @contextmanager
    def client(**_):
        yield server

    monkeypatch.setattr(answering, "get_client", client)
    return server


def submit(question, values=APPROVE):
    submit_answer(question, values, sleep=lambda _seconds: None)


def test_a_question_is_read_with_its_figures_decisions_and_deadline(server):
    question = read_question(server, server.run())
    assert question.description == "costs **5.00 USD**"
    assert question.decisions == ("approve", "reject")
    assert question.until == deadline_of(server.run())
    assert question.until > datetime.now(UTC)


@pytest.mark.parametrize("state", [Completed(), Suspended(timeout_seconds=60, pause_key="results-k:1")])
def test_a_run_that_asks_nothing_is_not_answered(server, state):
    server.state = state
    with pytest.raises(InputError, match="asks nothing"):
        read_question(server, server.run())


def test_an_answer_is_given_once_although_the_server_is_busy(server):
    question = read_question(server, server.run())
    server.faults = ["busy", "busy"]
    submit(question)
    assert server.answered == [(question.key, APPROVE)]
    with pytest.raises(Conflict, match="no longer open: approve, by Ada"):
        submit(question, APPROVE | {"decided_by": "Grace"})
    assert len(server.answered) == 1


def test_of_two_answers_at_the_same_moment_the_later_one_is_refused_with_the_first(server):
    question = read_question(server, server.run())
    server.faults = ["collision"]
    with pytest.raises(Conflict, match="no longer open: approve, by Grace"):
        submit(question)
    assert server.answered == [(question.key, APPROVE | {"decided_by": "Grace"})]


def test_a_lost_reply_is_found_to_have_arrived(server):
    question = read_question(server, server.run())
    server.faults = [lambda: None]
    submit(question)
    assert server.answered == [(question.key, APPROVE)]


@pytest.mark.parametrize("discarded", [False, True])
def test_after_a_lost_reply_the_next_question_is_not_answered(server, discarded):
    question = read_question(server, server.run())

    def the_run_goes_on_and_asks_again():
        if discarded:
            server.stored.clear()
        server.ask(key_of("approve-0a1b-900"))

    server.faults = [the_run_goes_on_and_asks_again]
    if discarded:
        with pytest.raises(OutcomeUnknown, match="may have been given"):
            submit(question)
    else:
        submit(question)
    assert server.answered == [(question.key, APPROVE)]


def test_a_server_that_stays_away_leaves_the_outcome_open(server):
    question = read_question(server, server.run())
    server.faults = ["busy"] * 10
    with pytest.raises(OutcomeUnknown, match="may have been given"):
        submit(question)
    server.read_flow_run = lambda _run_id: (_ for _ in ()).throw(httpx.ConnectError("no server"))
    with pytest.raises(httpx.ConnectError):  # nothing was sent
        submit(question)
    assert server.answered == []


def test_a_question_that_was_replaced_is_not_answered(server):
    question = read_question(server, server.run())
    server.ask(key_of("approve-0a1b-900"))
    with pytest.raises(Conflict, match="no longer open"):
        submit(question)
    assert server.answered == []


def test_a_late_answer_is_refused(server):
    server.ask(key_of(hours=-1))
    with pytest.raises(ApprovalExpired, match="expired at"):
        submit(read_question(server, server.run()))
    assert server.answered == []


def test_values_that_the_form_refuses_are_the_callers(server):
    with pytest.raises(InvalidRequest, match="not one of"):
        submit(read_question(server, server.run()), {"decision": "maybe"})
    assert server.answered == []
