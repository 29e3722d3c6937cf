"""A deployed designer is started once per round with what its flow takes, and its file is read when it has completed."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import ObjectNotFound
from prefect.states import Completed, Crashed, Failed, Running

from prefect_assay.archive import LocalStore
from prefect_assay.campaigns.loops import deployed
from prefect_assay.campaigns.loops.loop import Waiting
from prefect_assay.campaigns.loops.loop_log import LoopLog
from prefect_assay.designs.options import ReadingOptions
from prefect_assay.errors import ConfigurationError, DesignerFailed, InvalidSequences

OFFERED = {
    "loop_id": "loop",
    "round": 2,
    "n": 3,
    "budget_cents": None,
    "history": "/h.csv",
    "measurements": "/t.csv",
}


@pytest.fixture
def loop_log(tmp_path):
    return LoopLog(LocalStore(tmp_path), "p", "loop")


START = datetime(2026, 3, 1, tzinfo=UTC)
TAG = f"assay-start:{START.isoformat()}"


class Runs:
    """The runs of the deployment `design/gpu`, found by their idempotency keys."""

    def __init__(self):
        self.by_key = {}
        self.calls = []

    def start_run(self, deployment, parameters, *, name, tags, idempotency_key):
        self.calls.append((deployment, idempotency_key, parameters))
        new = FlowRun(
            id=uuid4(), flow_id=uuid4(), name=f"cold-crow-{len(self.by_key)}", tags=tags, state=Running()
        )
        return self.by_key.setdefault(idempotency_key, new)

    @property
    def newest(self):
        return list(self.by_key.values())[-1]


@pytest.fixture
def designer(monkeypatch, loop_log):
    """Asks the designer of a loop for round 2."""
    runs = Runs()
    monkeypatch.setattr(deployed, "start_run", runs.start_run)

    def ask(*takes, start=START, left=False):
        loop = SimpleNamespace(
            loop_id="loop", designer="design/gpu", loop_log=loop_log, start=start, archive_id="a1"
        )
        monkeypatch.setattr(deployed, "_parameters_of", lambda _: set(takes))
        return deployed.run_designer(loop, 2, OFFERED, has_designs=lambda writes: left and writes)

    ask.runs = runs
    return ask


def test_it_is_started_once_with_those_parameters_that_it_takes(designer, loop_log):
    waiting = designer("round", "n", "candidates", "gpu_type")
    assert isinstance(waiting, Waiting)
    assert "waits for the designer's run cold-crow-0 of round 2" in waiting.message
    assert waiting.pause == timedelta(minutes=5)
    designer.runs.newest.state = Completed()
    assert designer("round", "n", "candidates", "gpu_type") is True
    (run,) = designer.runs.by_key.values()
    assert run.tags == ["assay-designs-for:loop", TAG]
    assert {call[:2] for call in designer.runs.calls} == {("design/gpu", "assay-designer-loop-2@a1-1")}
    assert designer.runs.calls[0][2] == {
        "round": 2,
        "n": 3,
        "candidates": deployed.candidates_address(loop_log, 2),
    }


def test_one_of_the_earlier_contract_writes_into_the_source(designer):
    designer("round_name", "measurements")
    designer.runs.newest.state = Completed()
    assert designer("round_name", "measurements") is False
    assert designer.runs.calls[0][2] == {"measurements": "/t.csv"}


@pytest.mark.parametrize("state", [Failed(message="no GPU"), Crashed(message="killed")])
def test_one_that_fails_or_crashes_gives_no_designs_until_the_next_start(designer, state):
    designer("candidates")
    designer.runs.newest.state = state
    for _ in range(2):
        with pytest.raises(
            DesignerFailed, match=rf"cold-crow-0 gave no designs \({state.name}: {state.message}\); nothing"
        ):
            designer("candidates")
    assert isinstance(designer("candidates", start=START + timedelta(days=1)), Waiting)
    assert len(designer.runs.by_key) == 2


@pytest.mark.parametrize(("left", "runs"), [(True, 1), (False, 2)])
def test_a_new_start_asks_again_only_a_designer_that_has_left_nothing(designer, left, runs):
    designer("candidates")
    designer.runs.newest.state = Completed()
    designer("candidates", start=START + timedelta(days=1), left=left)
    assert len(designer.runs.by_key) == runs


def test_a_run_that_goes_on_is_waited_for_by_a_new_start(designer):
    designer("candidates")
    assert isinstance(designer("candidates", start=START + timedelta(days=1)), Waiting)
    assert len(designer.runs.by_key) == 1


class Client:
    """A Prefect server with these runs."""

    def __init__(self, *runs):
        self.runs = {run.id: run for run in runs}

    def __call__(self, **_):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def read_flow_run(self, run_id):
        if run_id not in self.runs:
            raise ObjectNotFound(LookupError(run_id))
        return self.runs[run_id]

    def read_deployment_by_name(self, name):
        raise ObjectNotFound(name)


def test_the_look_after_suspending_sees_that_it_has_ended(designer, monkeypatch):
    waiting = designer("candidates")
    run = designer.runs.newest
    monkeypatch.setattr(deployed, "get_client", Client(run))
    assert not waiting.has_news()
    run.state = Failed()
    assert waiting.has_news()
    monkeypatch.setattr(deployed, "get_client", Client())
    assert waiting.has_news(), "it was deleted, and another one is started"


def test_an_unknown_deployment_is_named(monkeypatch):
    monkeypatch.setattr(deployed, "get_client", Client())
    with pytest.raises(ConfigurationError, match="no deployment design/gpu; nothing was ordered"):
        deployed._parameters_of("design/gpu")


def test_what_it_has_written_is_kept_as_it_was(loop_log):
    from pathlib import Path

    address = Path(deployed.candidates_address(loop_log, 1))
    with pytest.raises(DesignerFailed, match="without writing candidates"):
        deployed.proposed_pool(loop_log, 1, "design/gpu", ReadingOptions())
    address.write_text("name,sequence,score\na,ACDEF,1\nb,ACDEG,2\n")
    pool = deployed.proposed_pool(loop_log, 1, "design/gpu", ReadingOptions())
    assert pool.designs == 2
    address.write_text("name,sequence\na,ACDJ\n")
    assert [c.columns for c in loop_log.read_candidates(pool)] == [{"score": "1"}, {"score": "2"}]
    with pytest.raises(InvalidSequences, match="'J'"):
        deployed.proposed_pool(loop_log, 1, "design/gpu", ReadingOptions())
