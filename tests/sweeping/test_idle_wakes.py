"""A wake-up that changes nothing leaves the run suspended; in any doubt the flow starts."""

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import uuid4

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.client.schemas.responses import SetStateStatus
from prefect.settings import PREFECT_API_URL, temporary_settings

from prefect_assay.errors import PaymentFailed, ServiceUnavailable
from prefect_assay.models.experiment import Experiment
from prefect_assay.models.job import Payment
from prefect_assay.models.update import Update
from prefect_assay.runs.tags import ETA_LABEL, EXPERIMENT_TAG, INVOICE_LABEL, PRICE_LABEL, RETRY_TAG
from prefect_assay.sweeping import idle_wakes
from prefect_assay.sweeping.idle_wakes import last_wait, suspended_again

START = datetime.now(UTC)
KINDS = {"Suspended": StateType.PAUSED, "Resuming": StateType.SCHEDULED, "Late": StateType.SCHEDULED}
KINDS |= {
    "AwaitingRetry": StateType.SCHEDULED,
    "Scheduled": StateType.SCHEDULED,
    "Pending": StateType.PENDING,
}
KINDS |= {"Submitting": StateType.PENDING, "Running": StateType.RUNNING, "Crashed": StateType.CRASHED}
KINDS |= {"Cancelling": StateType.CANCELLING, "Cancelled": StateType.CANCELLED}
WOKEN = ["Suspended", "Resuming", "Pending"]


def history(*names, key="results-abc:1", lasts=timedelta(days=70)):
    states = []
    for minute, name in enumerate(names):
        details = {"pause_key": key, "pause_timeout": START + lasts} if name == "Suspended" else {}
        states.append(
            State(
                type=KINDS[name],
                name=name,
                timestamp=START + timedelta(minutes=minute),
                state_details=details,
                message="before" if name == "Suspended" else None,
            )
        )
    return states


class Prefect:
    """One run, as the client of the process that is made for it sees it."""

    def __init__(self, states, **changes):
        self.states, self.resumed, self.shown, self.logged = states, [], [], []
        self.reported, self.payments, self.labels = [], [], {}
        values = {
            "id": uuid4(),
            "flow_id": uuid4(),
            "run_count": 1,
            "tags": [EXPERIMENT_TAG + "e-1"],
            "state": states[-1],
            "labels": {},
            "parameters": {
                "credentials": {"$ref": {"block_document_id": str(uuid4())}},
                "policy": 1,
                "archive": 1,
                "campaign_id": "c",
                "payment_method": "x402-exact",
            },
        }
        self.run = FlowRun.model_validate(values | changes)

    def read_flow_run(self, _):
        return self.run.model_copy(update={"state": self.states[-1]})

    def read_flow_run_states(self, _):
        return self.states

    def set_flow_run_state(self, run_id, state, *, force):
        assert (run_id, force) == (self.run.id, True)
        self.states = [*self.states, state]
        return SimpleNamespace(status=SetStateStatus.ACCEPT)

    def resume_flow_run(self, run_id, *, run_input):
        self.resumed.append((run_id, run_input))
        return SimpleNamespace(status=SetStateStatus.ACCEPT)

    def create_artifact(self, artifact):
        self.shown.append(artifact)

    def create_logs(self, lines):
        self.logged += lines


class Service:
    """One experiment; each look takes the next of its statuses, and an error among them is raised."""

    def __init__(self, *looks):
        self.looks = list(looks)

    def experiment(self, experiment_id):
        look = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        if isinstance(look, Exception):
            raise look
        status, results = look
        return Experiment(
            id=experiment_id, code="LAB-1", status=status, results_status=results, created_at=START
        )

    def experiment_updates(self, experiment_id):
        yield Update(id="u", experiment_id=experiment_id, timestamp=START, name="Assay | running")


@pytest.fixture
def look(monkeypatch):
    """Play a start with this Prefect and this service; returns whether the flow stays asleep."""

    def played(prefect, service):
        @contextmanager
        def client(**_):
            yield SimpleNamespace(client=prefect)

        @contextmanager
        def service_client():
            yield service

        block = SimpleNamespace(get_client=service_client)
        monkeypatch.setattr(idle_wakes, "SyncClientContext", SimpleNamespace(get_or_create=client))
        monkeypatch.setattr(
            idle_wakes.facts,
            "of_waiting",
            lambda seen: [
                (prefect.reported.append((run.run_id, found.status)), prefect.payments.append(made))
                for run, found, made in seen
            ],
        )
        monkeypatch.setattr(idle_wakes, "set_labels", lambda _, labels: prefect.labels.update(labels))
        monkeypatch.setattr(idle_wakes, "credentials_of", lambda _: block)
        with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:1/api"}):
            return suspended_again(str(prefect.run.id))

    return played


def test_an_update_that_changes_nothing_leaves_the_run_suspended_with_its_progress(look):
    eta = datetime(2026, 12, 2, 8, tzinfo=UTC)
    prefect = Prefect(history(*WOKEN), labels={ETA_LABEL: eta.isoformat()})
    assert look(prefect, Service(("in_production", "none")))
    state, wait = prefect.states[-1], prefect.states[0]
    assert state.name == "Suspended"
    assert state.message == "in the laboratory: in production, results expected 2 Dec 2026"
    assert state.state_details.pause_key == wait.state_details.pause_key
    assert state.state_details.pause_timeout == wait.state_details.pause_timeout
    assert state.state_details.pause_reschedule
    assert not prefect.resumed
    assert prefect.reported == [(prefect.run.id, "in_production")]
    (artifact,) = prefect.shown
    assert (artifact.key, artifact.type, artifact.data) == ("assay-progress-c-1", "progress", 50)
    assert "Assay / running" in artifact.description
    assert prefect.logged[0].message == f"Experiment LAB-1 {state.message}"


def test_the_same_stage_again_is_shown_once(look):
    states = history(*WOKEN)
    states[0].message = "in the laboratory: in production"
    prefect = Prefect(states)
    assert look(prefect, Service(("in_production", "none")))
    assert (prefect.shown, prefect.logged) == ([], [])
    assert prefect.states[-1].message == states[0].message


@pytest.mark.parametrize(
    "found", [("done", "all"), ("canceled", "none"), ("in_production", "partial"), ("in_review", "all")]
)
def test_news_starts_the_flow(look, found):
    prefect = Prefect(history(*WOKEN))
    assert not look(prefect, Service(found))
    assert prefect.states[-1].name == "Pending"


PAID = Payment(
    invoice_id="inv_1", method="async_invoice", state="settled", amount_cents=21_900, already_paid=True
)


@pytest.mark.parametrize("made", [PAID, None])
def test_a_hosted_invoice_is_recorded_when_it_is_paid_and_the_run_goes_on_waiting(look, made, monkeypatch):
    prefect = Prefect(history(*WOKEN))
    del prefect.run.parameters["payment_method"]
    monkeypatch.setattr(idle_wakes, "payment_reader", lambda *_: lambda: made)
    assert look(prefect, Service(("waiting_for_materials", "none")))
    assert prefect.states[-1].name == "Suspended"
    assert prefect.payments == [made]
    assert prefect.labels == ({PRICE_LABEL: "21900", INVOICE_LABEL: ""} if made else {})
    assert not prefect.resumed


def test_a_payment_that_comes_during_the_look_wakes_the_run_to_be_recorded(look, monkeypatch):
    """Its delivery found no suspended run, and woke none."""
    prefect, read = Prefect(history(*WOKEN)), iter([None, PAID])
    del prefect.run.parameters["payment_method"]
    monkeypatch.setattr(idle_wakes, "payment_reader", lambda *_: lambda: next(read))
    assert look(prefect, Service(("waiting_for_materials", "none")))
    assert prefect.resumed == [(prefect.run.id, None)]
    assert prefect.labels == {}  # so that the next look records it, with its event


def test_a_payment_that_cannot_be_recorded_starts_the_flow(look, monkeypatch):
    def fails():
        raise PaymentFailed("the invoice is void")

    prefect = Prefect(history(*WOKEN))
    del prefect.run.parameters["payment_method"]
    monkeypatch.setattr(idle_wakes, "payment_reader", lambda *_: fails)
    assert not look(prefect, Service(("waiting_for_materials", "none")))
    assert (prefect.states[-1].name, prefect.shown, prefect.reported) == ("Pending", [], [])
    assert prefect.labels == {}


def test_a_passed_deadline_starts_the_flow(look):
    prefect = Prefect(history(*WOKEN))
    prefect.run.parameters["deadline_days"] = 0.0001
    found = Service(("in_production", "none"))
    late = found.experiment("e-1").model_copy(update={"created_at": START - timedelta(days=1)})
    found.experiment = lambda _: late
    assert not look(prefect, found)


@pytest.mark.parametrize("name", ["Cancelling", "Cancelled", "AwaitingRetry", "Running"])
def test_a_run_whose_state_has_changed_during_the_look_is_not_suspended(look, name):
    """A forced suspension would undo a cancellation."""
    prefect = Prefect(history(*WOKEN))
    service = Service(("in_production", "none"))
    read = service.experiment_updates

    def meanwhile(experiment_id):
        prefect.states.append(State(type=KINDS[name], name=name))
        return read(experiment_id)

    service.experiment_updates = meanwhile
    assert not look(prefect, service)
    assert prefect.states[-1].name == name
    assert not prefect.reported


@pytest.mark.parametrize("fails", ["the answer", "the events"])
def test_an_error_once_the_run_is_suspended_wakes_it_again(look, monkeypatch, fails):
    """Its flow may not start any more, and a delivery in the meantime found no suspended run."""
    prefect = Prefect(history(*WOKEN))
    if fails == "the answer":
        monkeypatch.setattr(prefect, "set_flow_run_state", lost_answer(prefect.set_flow_run_state))
    else:
        # `of_waiting` reads the list that the fixture fills.
        prefect.payments = None
    assert look(prefect, Service(("in_production", "none")))
    assert prefect.states[-1].name == "Suspended"
    assert prefect.resumed == [(prefect.run.id, None)]


def lost_answer(request):
    def send(*given, **options):
        request(*given, **options)
        raise httpx.ReadTimeout("no answer")

    return send


@pytest.mark.parametrize("second", [("done", "all"), ServiceUnavailable("away")])
def test_results_that_come_between_the_look_and_the_suspension_wake_the_run(look, second):
    prefect = Prefect(history(*WOKEN))
    assert look(prefect, Service(("in_production", "none"), second))
    assert prefect.states[-1].name == "Suspended"
    assert prefect.resumed == [(prefect.run.id, None)]


@pytest.mark.parametrize(
    "changes",
    [
        {"run_count": 0},
        {"tags": []},
        {"tags": [EXPERIMENT_TAG + "e-1", EXPERIMENT_TAG + "e-2"]},
        {"tags": [EXPERIMENT_TAG + "e-1", RETRY_TAG + "1"]},
        {"parameters": {"credentials": {"token": "not a saved block"}, "policy": 1, "archive": 1}},
        {"parameters": {"of": "another package"}},
    ],
)
def test_a_run_that_waits_for_something_else_starts(look, changes):
    assert not look(Prefect(history(*WOKEN), **changes), Service(("in_production", "none")))


@pytest.mark.parametrize("key", ["quote-abc:1", "approve-abc:1", "again-steps:1", "0", "children-g:1", None])
def test_another_reason_to_wait_starts_the_flow(look, key):
    assert not look(Prefect(history(*WOKEN, key=key)), Service(("in_production", "none")))


def test_what_cannot_be_read_starts_the_flow(look):
    prefect = Prefect(history(*WOKEN))
    assert not look(prefect, Service(ServiceUnavailable("away")))
    assert prefect.states[-1].name == "Pending"
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:1/api"}):
        assert not suspended_again("no id")
        assert not suspended_again(None)


def test_without_a_prefect_api_nothing_is_looked_at():
    with temporary_settings({PREFECT_API_URL: None}):
        assert not suspended_again(str(uuid4()))


@given(st.lists(st.sampled_from(sorted(KINDS)), max_size=8))
def test_only_a_wake_up_may_lie_between_the_suspension_and_the_start(names):
    found = last_wait(history(*names))
    after = names[len(names) - names[::-1].index("Suspended") :] if "Suspended" in names else None
    expected = after is not None and set(after) <= {"Resuming", "Late", "Pending", "Submitting"}
    assert (found is not None) == expected


def test_a_suspension_that_is_about_to_expire_starts_the_flow():
    assert last_wait(history(*WOKEN, lasts=timedelta(hours=1))) is None
    assert last_wait(history(*WOKEN)) is not None
