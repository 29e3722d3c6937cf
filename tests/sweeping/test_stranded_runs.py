"""Which runs no worker can start any more, what replaces them, and which runs paused by hand are rescheduled."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.client.schemas.responses import DeploymentResponse, SetStateStatus
from prefect.exceptions import ObjectNotFound
from prefect.states import Cancelling, Completed, Failed, Paused, Running, Scheduled, Suspended

from prefect_assay.runs.crashes import is_unwanted
from prefect_assay.runs.states import has_ended, successor_of
from prefect_assay.runs.tags import EXPERIMENT_TAG, GROUP_TAG, REPLACED_TAG
from prefect_assay.sweeping import cancellations
from prefect_assay.sweeping import stranded_runs as stranded
from prefect_assay.sweeping.cancellations import report_canceled_runs

NOW = datetime.now(UTC)
FLOW = uuid4()
OURS = {"credentials": {"$ref": {"block_document_id": str(uuid4())}}, "policy": {}, "archive": {}}


def deployment(pool="assay", name="assay-experiment", flow=FLOW):
    return DeploymentResponse.model_validate(
        {"id": str(uuid4()), "flow_id": str(flow), "name": name, "work_pool_name": pool, "labels": {}}
    )


def run(state, deployment_id, *tags, pool=None, minutes=5):
    state.timestamp = NOW - timedelta(minutes=minutes)
    return FlowRun(
        id=uuid4(),
        flow_id=FLOW,
        name="a-run",
        parameters=OURS,
        deployment_id=deployment_id,
        work_pool_name=pool,
        tags=["assay", *tags],
        state=state,
        end_time=state.timestamp if state.is_final() else None,
    )


def waiting(**given):
    return Suspended(timeout_seconds=86_400, pause_key=f"results-x:{uuid4()}", **given)


class Server:
    """Runs, their histories and deployments, as far as a replacement goes."""

    def __init__(self, *runs, deployments=(), history=()):
        self.runs = {each.id: each for each in runs}
        self.deployments, self.history, self.made = list(deployments), list(history), {}

    def read_flow_runs(self, *, flow_run_filter, offset=0, **_):
        kinds = flow_run_filter.state.type.any_
        return [each for each in self.runs.values() if each.state.type in kinds] if not offset else []

    def read_flow_run(self, run_id):
        return self.runs[run_id]

    def read_flow_run_states(self, _run_id):
        return self.history

    def read_deployments(self, *, deployment_filter, **_):
        return [each for each in self.deployments if each.name in deployment_filter.name.any_][:200]

    def read_deployment(self, deployment_id):
        for each in self.deployments:
            if each.id == deployment_id:
                return each
        raise ObjectNotFound(Exception())

    def create_flow_run_from_deployment(self, deployment_id, *, idempotency_key, state, **given):
        if idempotency_key not in self.made:
            new = FlowRun(
                id=uuid4(), flow_id=FLOW, deployment_id=deployment_id, state=state or Scheduled(), **given
            )
            self.runs[new.id] = self.made[idempotency_key] = new
        return self.made[idempotency_key]

    def update_flow_run(self, run_id, *, tags):
        self.runs[run_id].tags = tags

    def set_flow_run_state(self, run_id, state, **_):
        self.runs[run_id].state = state
        return SimpleNamespace(status=SetStateStatus.ACCEPT)

    def replaced(self):
        return [(old, new) for old in [*self.runs.values()] if (new := successor_of(self, old)) is not old]


OWN, AGAIN, SERVED = deployment(), deployment(), deployment(pool=None)


@pytest.mark.parametrize(
    ("there", "pool", "expected"),
    [
        ([OWN], "assay", None),  # all is well
        ([OWN], None, OWN),  # the pool was deleted and made again
        ([SERVED], None, SERVED),  # deleted, and now served
        ([AGAIN], "assay", AGAIN),  # the deployment was deleted and made again
        ([], "assay", None),  # not made again yet
        ([deployment(name="somebody-elses"), deployment(flow=uuid4())], "assay", None),
    ],
)
def test_a_run_moves_only_where_it_cannot_be_started(there, pool, expected):
    found = stranded.DeploymentIndex(Server(deployments=there)).replacement_for(
        run(waiting(), OWN.id, pool=pool)
    )
    assert found == expected


def test_a_run_stays_where_there_are_more_deployments_than_a_page_holds():
    index = stranded.DeploymentIndex(
        Server(deployments=[*(deployment(name=f"n{i}") for i in range(200)), AGAIN, OWN])
    )
    assert index.replacement_for(run(waiting(), OWN.id, pool="assay")) is None


def test_a_served_deployment_starts_runs_without_a_queue():
    index = stranded.DeploymentIndex(Server(deployments=[SERVED]))
    assert index.replacement_for(run(waiting(), SERVED.id, pool=None)) is None
    assert index.replacement_for(run(waiting(), SERVED.id, pool="assay")) is None


def test_the_new_run_waits_as_the_old_one_did_and_is_found_in_its_place():
    old = run(waiting(), OWN.id, EXPERIMENT_TAG + "e-1", GROUP_TAG + "g", "mine")
    server = Server(old, deployments=[OWN])
    (new,) = stranded.replace_waiting_runs(server)
    assert (new.state.name, new.name, new.parameters) == ("Suspended", old.name, old.parameters)
    assert new.tags == ["assay", EXPERIMENT_TAG + "e-1", GROUP_TAG + "g", "mine"]
    assert server.runs[old.id].state.name == "Replaced"
    assert server.runs[old.id].tags == ["assay", "mine", f"{REPLACED_TAG}{new.id}"]
    assert successor_of(server, server.runs[old.id]) is new
    assert not has_ended(server.runs[old.id])  # for its parent
    problems = []
    assert report_canceled_runs(server, NOW, problems).read == 0
    assert problems == []


def test_a_replacement_that_was_interrupted_is_completed_with_the_same_new_run():
    old = run(waiting(), OWN.id)
    server = Server(old, deployments=[OWN])
    update, server.update_flow_run = server.update_flow_run, None
    with pytest.raises(TypeError):
        stranded.replace_waiting_runs(server)
    server.update_flow_run = update
    new = stranded.replace_run(server, old, OWN)
    assert server.replaced() == [(old, new)]
    assert len(server.runs) == 2


@pytest.mark.parametrize(
    "state",
    [
        Suspended(pause_key="approve-x", state_details={"run_input_keyset": {"schema": "s"}}),
        Scheduled(name="Resuming"),
        Paused(),
    ],
    ids=["asks", "resuming", "paused"],
)
def test_a_run_that_asks_or_should_run_runs(state):
    server = Server(run(state, OWN.id), deployments=[OWN])
    (new,) = stranded.replace_waiting_runs(server)
    assert new.state.is_scheduled()


def test_a_run_that_a_person_has_scheduled_starts_when_it_was_to_start():
    due = NOW + timedelta(days=2)
    server = Server(run(Scheduled(scheduled_time=due), OWN.id), deployments=[OWN])
    (new,) = stranded.replace_waiting_runs(server)
    assert new.state.state_details.scheduled_time == due


def test_the_sweep_leaves_a_served_process_time_to_take_a_run():
    server = Server(deployments=[OWN])

    def moved(due, minutes):
        state = Scheduled(name="Resuming", scheduled_time=NOW + due)
        waits = run(state, OWN.id, minutes=minutes)
        server.runs[waits.id] = waits
        return len(stranded.replace_unstarted_runs(server, [waits], NOW))

    assert moved(due=timedelta(minutes=-1), minutes=1) == 0
    assert moved(due=timedelta(hours=1), minutes=5) == 0
    assert moved(due=timedelta(minutes=-3), minutes=3) == 1


def canceled(message):
    return State(type=StateType.CANCELLED, name="Cancelled", message=message)


def test_a_run_that_its_worker_has_canceled_is_replaced_when_its_deployment_is_there_again():
    old = run(canceled(f"Deployment {OWN.id} no longer exists, cancelled run."), OWN.id)
    server, problems = Server(old), []
    found = report_canceled_runs(server, NOW, problems)
    assert (found.read, found.unsettled_since) == (1, old.end_time)  # the next sweep looks again
    assert "prefect-assay deploy" in problems[0]
    assert not has_ended(old)
    server.deployments = [AGAIN]
    report_canceled_runs(server, NOW, problems)
    ((_, new),) = server.replaced()
    assert new.deployment_id == AGAIN.id
    assert len(problems) == 1


def test_a_run_that_a_person_has_canceled_is_not_replaced():
    old = run(canceled(None), OWN.id)
    server = Server(old, deployments=[AGAIN])
    report_canceled_runs(server, NOW, [])
    assert server.replaced() == []
    assert has_ended(old)


@pytest.mark.parametrize(
    "before", [Running(), waiting(), Completed(message="archived"), Failed(message="over a cap")]
)
def test_a_run_that_its_runner_has_canceled_at_its_end_goes_on_and_an_end_is_given_back(before):
    stopped = canceled("Runner is shutting down.")
    old = run(stopped, OWN.id)
    before.timestamp = stopped.timestamp - timedelta(seconds=5)
    server, problems = Server(old, deployments=[OWN], history=[stopped, before]), []
    assert not has_ended(old)
    report_canceled_runs(server, NOW, problems)
    state = server.runs[old.id].state
    expected = (before.name, before.message) if before.is_final() else ("AwaitingRetry", state.message)
    assert (state.name, state.message) == expected
    assert problems == []
    assert not is_unwanted([before, stopped, state])


def test_the_hook_settles_nothing_for_a_run_whose_runner_stops(monkeypatch):
    monkeypatch.setattr(cancellations, "settle_canceled_run", lambda *_: pytest.fail("nobody canceled it"))
    stopping = Cancelling(message="Runner is shutting down.")
    cancellations.report_cancellation(None, run(stopping, OWN.id), stopping)


FAILED = State(type=StateType.FAILED, message="The flow was paused and never resumed.")
BY_HAND = [Suspended(timeout_seconds=300), Suspended(pause_key=str(uuid4())), Paused(timeout_seconds=300)]
OF_ITS_OWN = [
    waiting(),
    Suspended(pause_key="approve-x", state_details={"run_input_keyset": {"schema": "s"}}),
]


@pytest.mark.parametrize(
    ("pause", "taken"), [*((p, True) for p in BY_HAND), *((p, False) for p in OF_ITS_OWN)]
)
def test_what_a_person_suspended_and_forgot_goes_on_and_what_waited_in_vain_does_not(pause, taken):
    old = run(FAILED.model_copy(), OWN.id)
    now = datetime.now(UTC)  # `has_ended` asks the clock, and the module may be an hour old
    pause.timestamp = now - timedelta(hours=1)
    server = Server(old, history=[old.state, pause])
    old.state.timestamp = now - timedelta(minutes=30)
    assert not has_ended(old)  # for its parent
    assert stranded.reschedule_expired(server, [old]) == ([old.id] if taken else [])
    assert server.runs[old.id].state.is_scheduled() == taken


@pytest.mark.parametrize(
    ("before", "minutes", "beats", "taken"),
    [
        (Paused(), 6, False, True),
        (Paused(), 3, False, False),  # a process that lives may not have said so yet
        (Paused(), 6, True, False),
        (Suspended(), 6, False, False),  # its process has begun, and sends no heartbeats
        (Scheduled(), 6, False, False),
    ],
)
def test_a_run_without_a_process_after_a_pause_is_rescheduled(monkeypatch, before, minutes, beats, taken):
    old = run(Running(), OWN.id, minutes=minutes)
    before.timestamp = old.state.timestamp - timedelta(minutes=1)
    server = Server(old, history=[before, old.state])
    monkeypatch.setattr(stranded, "last_heartbeat", lambda *_: NOW if beats else None)
    assert stranded.reschedule_unpaused(server, [old], NOW) == ([old.id] if taken else [])
