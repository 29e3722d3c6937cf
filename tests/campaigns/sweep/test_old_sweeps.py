"""The sweep removes its own finished runs on a real Prefect server, and nothing else."""

from datetime import UTC, datetime, timedelta

import pytest
from prefect import flow
from prefect.client.schemas.actions import ArtifactCreate
from prefect.states import Completed, Running

from prefect_assay.campaigns.sweep import old_sweeps
from prefect_assay.campaigns.sweep.old_sweeps import remove_old_sweeps


@pytest.fixture
def deployment(api, request):
    @flow(name="swept")
    def swept():
        return None

    return api.create_deployment(api.create_flow(swept), name=request.node.name)


def ended(api, deployment, state=None):
    run = api.create_flow_run_from_deployment(deployment)
    api.set_flow_run_state(run.id, state or Completed(data={"a": 1}), force=True)
    return run.id


def there(api, *ids):
    return [run for run in ids if run in {flow_run.id for flow_run in api.read_flow_runs()}]


def tomorrow():
    return datetime.now(UTC) + timedelta(days=1)


def test_finished_runs_of_the_same_deployment_go_and_others_stay(api, deployment):
    @flow(name="of-others")
    def of_others():
        return None

    other = api.create_deployment(api.create_flow(of_others), name="other")
    old, running, theirs = (
        ended(api, deployment),
        ended(api, deployment, Running()),
        ended(api, other),
    )
    assert remove_old_sweeps(api, deployment, datetime.now(UTC) - timedelta(hours=1)) == 0
    assert there(api, old) == [old]
    assert remove_old_sweeps(api, deployment, tomorrow()) == 1
    assert there(api, old, running, theirs) == [running, theirs]
    assert remove_old_sweeps(api, deployment, tomorrow()) == 0


def test_the_run_of_the_newest_artifact_stays(api, deployment):
    earlier, newest, silent = (ended(api, deployment) for _ in range(3))
    for run in (earlier, newest):
        api.create_artifact(ArtifactCreate(key="assay-sweep", type="markdown", data="x", flow_run_id=run))
    assert remove_old_sweeps(api, deployment, tomorrow()) == 2
    assert there(api, earlier, newest, silent) == [newest]


def test_one_sweep_removes_a_bounded_number(api, deployment, monkeypatch):
    monkeypatch.setattr(old_sweeps, "_AT_ONCE", 2)
    runs = [ended(api, deployment) for _ in range(3)]
    assert remove_old_sweeps(api, deployment, tomorrow()) == 2
    assert len(there(api, *runs)) == 1
