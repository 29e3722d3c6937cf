"""The sweep wakes a loop that would go on, and no other."""

import os
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun
from prefect.states import Completed, Crashed, Running, State, StateDetails, StateType

from prefect_assay.looping import wakes
from prefect_assay.looping.files import design_files
from prefect_assay.runs.tags import GROUP_TAG, LOOPS_TAG, WAITS_TAG

NOW = datetime.now(UTC)


def suspended(key, *, tags=(LOOPS_TAG,), at=NOW, **parameters):
    details = StateDetails(pause_key=f"{key}:{uuid4()}")
    state = State(type=StateType.PAUSED, name="Suspended", timestamp=at, state_details=details)
    return FlowRun(flow_id=uuid4(), tags=list(tags), state=state, parameters=parameters)


def woken(run, *designers, now=NOW, problems=None):
    asked = []

    def read_flow_runs(*, flow_run_filter, **_):
        asked.append(flow_run_filter.tags.any_)
        return list(designers)

    client = SimpleNamespace(read_flow_runs=read_flow_runs)
    found = wakes.loops_to_wake(client, [run], now, [] if problems is None else problems)
    return found == [run.id], asked


def designer(state):
    return FlowRun(flow_id=uuid4(), state=state)


@pytest.mark.parametrize(
    ("designers", "expected"),
    [
        ([Completed()], True),
        ([Crashed()], True),
        ([Running()], False),
        ([Completed(), Running()], False),
        ([], True),  # deleted: the loop looks, and fails with the reason
    ],
)
def test_a_loop_goes_on_when_its_designer_has_ended(designers, expected):
    run = suspended("designer-loop-2@scope", tags=[LOOPS_TAG, WAITS_TAG + "designer-loop-2@scope"])
    found, asked = woken(run, *map(designer, designers))
    assert found is expected
    assert asked == [[GROUP_TAG + "designer-loop-2@scope"]]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.fasta").write_text(">a\nACD\n")
    os.utime(tmp_path / "a.fasta", (1e9, 1e9))
    return tmp_path


def waiting(folder, **changes):
    seen = design_files(str(folder), now=NOW.timestamp(), settle=30).fingerprint()
    until = int((NOW + timedelta(days=1)).timestamp())
    return suspended(f"designs-{seen}-until-{until}", **{"source": str(folder)} | changes)


def test_a_loop_that_waits_for_files_is_woken_by_a_complete_one(folder):
    run = waiting(folder)
    assert not woken(run)[0]
    (folder / "b.fasta.part").write_text(">b\nACD\n")
    (folder / "c.fasta").write_text(">c\nACD\n")  # may still grow
    assert not woken(run)[0]
    os.utime(folder / "c.fasta", (1e9, 1e9))
    assert woken(run)[0]


def test_a_deadline_wakes_it_too(folder):
    assert woken(waiting(folder), now=NOW + timedelta(days=1))[0]


def test_a_folder_that_the_sweep_cannot_see_is_left_to_the_loop(folder):
    problems = []
    run = waiting(folder)
    run.parameters["source"] = str(folder / "absent")
    assert not woken(run, problems=problems)[0]
    assert "cannot see them" in problems[0]
    assert woken(run, now=NOW + timedelta(hours=1))[0]


@pytest.mark.parametrize(
    "wrong", [{"source": "~nosuchuser/designs"}, {"source": "nul\0"}, {"settle_seconds": "soon"}]
)
def test_a_loop_that_cannot_be_looked_at_keeps_no_other_asleep(folder, wrong):
    broken, other = waiting(folder, **wrong), waiting(folder)
    (folder / "b.fasta").write_text(">b\nACD\n")
    os.utime(folder / "b.fasta", (1e9, 1e9))
    problems = []
    assert wakes.loops_to_wake(None, [broken, other], NOW, problems) == [other.id]
    assert [broken.name in line and "cannot see them" in line for line in problems] == [True]
    assert woken(broken, now=NOW + timedelta(hours=1))[0]


@pytest.mark.parametrize("key", ["children-round-x", "again-propose", "approve-x-until-1-y"])
def test_a_loop_that_waits_for_something_else_stays_asleep(key):
    assert not woken(suspended(key))[0]


def test_runs_of_other_flows_are_left_alone(folder):
    assert not woken(suspended("designer-x", tags=["assay"]))[0]
