"""Work pools: executions that share nothing but the Prefect server, the service and the archive; and any type of pool.

The pool's job template gives each execution an empty folder, HOME and Prefect home, as a container has them.
"""

import subprocess
import sys

import pytest
from prefect.client.schemas.actions import WorkPoolCreate, WorkPoolUpdate

from support.runs.world import a_world

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(600)]

DESIGN = "SESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE"
QUEUES = {"campaign": "default", "design-build-test": "default", "decide": "sweep", "sweep": "sweep"}
# Prefect's own start of a run, in folders that are made for this execution.
BARE = """#!/bin/sh
set -e
home=$(mktemp -d "{folder}/XXXXXXXX")
mkdir "$home/user" "$home/prefect" "$home/here"
cd "$home/here"
unset PREFECT_LOCAL_STORAGE_PATH PREFECT_PROFILES_PATH
export HOME="$home/user" PREFECT_HOME="$home/prefect"
exec "{python}" -m prefect.engine
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with a_world(tmp_path_factory.mktemp("pools"), stack_options={"runner": "worker"}) as made:
        yield made


def deploy(world, *options):
    return subprocess.run(
        [sys.executable, "-m", "prefect_assay.cli", "deploy", "--no-automations", *options],
        env=world.stack.env,
        cwd=world.folder,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def places(world):
    deployments = [(flow, world.api.read_deployment_by_name(f"{flow}/assay-{flow}")) for flow in QUEUES]
    return {flow: (deployment.work_pool_name, deployment.work_queue_name) for flow, deployment in deployments}


def test_every_execution_of_a_campaign_has_an_empty_folder_and_home(world):
    folder = world.folder / "executions"
    folder.mkdir()
    script = world.folder / "bare.sh"
    script.write_text(BARE.format(folder=folder, python=sys.executable))
    script.chmod(0o755)
    template = world.api.read_work_pool("assay").base_job_template
    template["variables"]["properties"]["command"]["default"] = str(script)
    world.api.update_work_pool("assay", WorkPoolUpdate(base_job_template=template))

    run = world.campaign(world.designs("bare", DESIGN), campaign_id="bare")
    world.asleep(run, seconds=150)
    world.advance(days=16)
    world.until(run, "Completed", seconds=150)
    assert len(world.orders("bare")) == 1
    assert len(world.settlements("bare")) == 1
    executed = world.history(run).count("Running")
    assert executed >= 2  # at least once before its wait and once after
    assert len(list(folder.iterdir())) == executed


def test_deployments_follow_the_pool(world):
    for name, kind in (("containers", "docker"), ("cluster", "kubernetes")):
        world.api.create_work_pool(WorkPoolCreate(name=name, type=kind, base_job_template={}))
    refused = deploy(world, "--work-pool", "elsewhere")
    assert refused.returncode != 0
    assert "prefect work-pool create elsewhere --type docker" in " ".join(refused.stderr.split())
    assert set(places(world).values()) == {("assay", "default"), ("assay", "sweep")}

    done = deploy(world, "--work-pool", "containers")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "prefect worker start --pool containers --type docker\n" in done.stdout
    assert places(world) == {flow: ("containers", queue) for flow, queue in QUEUES.items()}

    again = deploy(world)  # without a name: where they are
    assert again.returncode == 0, again.stdout + again.stderr
    assert places(world) == {flow: ("containers", queue) for flow, queue in QUEUES.items()}

    assert deploy(world, "--work-pool", "cluster").returncode == 0
    assert places(world) == {flow: ("cluster", queue) for flow, queue in QUEUES.items()}
    assert deploy(world, "--work-pool", "assay").returncode == 0
