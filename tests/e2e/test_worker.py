"""`prefect.yaml` for real: deployed on a process work pool, run by a worker from module-path entry points."""

import subprocess
import sys

import pytest
from prefect.client.orchestration import get_client

from support.world import a_world

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

BINDER = "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with a_world(tmp_path_factory.mktemp("worker"), stack_options={"runner": "worker"}) as made:
        yield made


def deploy(world):
    return subprocess.run(
        [sys.executable, "-m", "prefect_assay.cli", "deploy"],
        env=world.stack.env,
        cwd=world.folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_deploy_twice_then_a_campaign_runs_on_the_worker(world):
    for _ in range(2):  # safe to run again
        done = deploy(world)
        assert done.returncode == 0, done.stdout + done.stderr
    with get_client(sync_client=True) as client:
        deployments = {d.entrypoint: d for d in client.read_deployments()}
        assert set(deployments) == {
            "prefect_assay.flows.experiment:experiment",
            "prefect_assay.flows.campaign:campaign",
            "prefect_assay.flows.design_build_test:design_build_test",
            "prefect_assay.flows.sweep:sweep",
        }
        assert {d.work_pool_name for d in deployments.values()} == {"assay"}
        (schedule,) = deployments["prefect_assay.flows.sweep:sweep"].schedules
        assert schedule.active
        assert schedule.schedule.interval.total_seconds() == 300

    run = world.campaign(world.designs("worker", BINDER), campaign_id="worker")
    world.suspended_children("worker")
    world.advance(days=16)
    done = world.until(run, "Completed", seconds=90)
    assert "1 of 1 experiments have results" in done.state.message
