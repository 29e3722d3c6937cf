"""A deployed designer is started once per round with what its flow takes, and its file is read when it has completed."""

from datetime import timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun
from prefect.states import Completed, Crashed, Failed

from prefect_assay.archive import LocalStore
from prefect_assay.designs import AS_WRITTEN
from prefect_assay.errors import ConfigurationError, DesignerFailed, InvalidSequences
from prefect_assay.looping import LoopBook, deployed
from prefect_assay.runs import PollPolicy
from prefect_assay.waiting import WaitsFor

OFFERED = {
    "loop_id": "loop",
    "round": 2,
    "n": 3,
    "budget_cents": None,
    "history": "/h.csv",
    "measurements": "/t.csv",
}


@pytest.fixture
def book(tmp_path):
    return LoopBook(LocalStore(tmp_path), "p", "loop")


@pytest.fixture
def designer(monkeypatch, book):
    """A deployment `design/gpu`; `ask` runs it, which ends in the given state."""
    calls = []

    def ask(state, *takes, left=True):
        run = FlowRun(id=uuid4(), flow_id=uuid4(), name="cold-crow", state=state)

        def start_child(deployment, key, parameters, *, is_done, ended, groups, **_):
            assert ended(run)
            calls.append(SimpleNamespace(deployment=deployment, key=key, given=parameters, groups=groups))
            calls[-1].done = is_done(run)
            return run

        def wait_for_children(_, *, group, kind, ended, **__):
            assert (kind, [group]) == (WaitsFor.DESIGNER, calls[-1].groups)
            return [run] if run.state else []

        monkeypatch.setattr(deployed, "start_child", start_child)
        monkeypatch.setattr(deployed, "wait_for_children", wait_for_children)
        monkeypatch.setattr(deployed, "_parameters_of", lambda _: set(takes))
        return deployed.run_designer(
            "design/gpu",
            OFFERED,
            book=book,
            number=2,
            scope="s",
            timeout=timedelta(days=1),
            poll=PollPolicy(),
            left=lambda writes: left and writes,
        )

    ask.calls = calls
    return ask


def test_it_gets_those_parameters_that_it_takes(designer, book):
    assert designer(Completed(), "round", "n", "candidates", "gpu_type")
    (call,) = designer.calls
    assert (call.deployment, call.key) == ("design/gpu", "assay-designer-loop-2@s")
    assert call.given == {"round": 2, "n": 3, "candidates": deployed.candidates_address(book, 2)}
    assert call.done


def test_one_of_the_earlier_contract_writes_into_the_source(designer):
    assert not designer(Completed(), "round_name", "measurements")
    assert designer.calls[0].given == {"measurements": "/t.csv"}
    assert not designer.calls[0].done


@pytest.mark.parametrize("state", [Failed(message="no GPU"), Crashed(message="killed")])
def test_one_that_fails_or_crashes_gives_no_designs(designer, state):
    with pytest.raises(
        DesignerFailed, match=rf"cold-crow gave no designs \({state.name}: {state.message}\); nothing"
    ):
        designer(state, "candidates")


def test_an_unknown_deployment_is_named(monkeypatch):
    from prefect.exceptions import ObjectNotFound

    class Client:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def read_deployment_by_name(self, name):
            raise ObjectNotFound(name)

    monkeypatch.setattr(deployed, "get_client", lambda **_: Client())
    with pytest.raises(ConfigurationError, match="no deployment design/gpu; nothing was ordered"):
        deployed._parameters_of("design/gpu")


def test_what_it_has_written_is_kept_as_it_was(book):
    from pathlib import Path

    address = Path(deployed.candidates_address(book, 1))
    with pytest.raises(DesignerFailed, match="without writing candidates"):
        deployed.proposed_pool(book, 1, "design/gpu", AS_WRITTEN)
    address.write_text("name,sequence,score\na,ACDEF,1\nb,ACDEG,2\n")
    pool = deployed.proposed_pool(book, 1, "design/gpu", AS_WRITTEN)
    assert pool.designs == 2
    address.write_text("name,sequence\na,ACDJ\n")
    assert [c.columns for c in book.candidates(pool)] == [{"score": "1"}, {"score": "2"}]
    with pytest.raises(InvalidSequences, match="'J'"):
        deployed.proposed_pool(book, 1, "design/gpu", AS_WRITTEN)
