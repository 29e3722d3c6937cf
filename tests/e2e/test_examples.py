"""The folders of examples/, played as a user plays them: with a real server, worker, receiver and lab."""

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from prefect.deployments import run_deployment

from prefect_assay.campaigns.flow_results import LoopReport
from prefect_assay.flows import sweep
from support.runs.world import a_world

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    env = {"PYTHONPATH": str(EXAMPLES / "scheduled_loop"), "PREFECT_RUNNER_POLL_FREQUENCY": "1"}
    with a_world(tmp_path_factory.mktemp("examples"), stack_options={"env": env, "runner": "worker"}) as made:
        made.save_documented_blocks()
        yield made


def test_the_tasks_in_a_flow_of_your_own_order_and_pay_once(world, tmp_path, capsys):
    example = runpy.run_path(str(EXAMPLES / "own_flow" / "campaign_tasks.py"))
    example["main"](tmp_path)
    lines = capsys.readouterr().out.splitlines()
    first, again = (
        line.partition(":")[2].strip() for line in lines if line.startswith(("archived", "again"))
    )
    assert first == again
    assert "orders at the lab: 1" in lines
    assert [path.parent.name for path in tmp_path.rglob("results.csv")] == ["v001"]


def test_a_deployed_campaign_suspends_and_a_webhook_wakes_it(world):
    example = runpy.run_path(str(EXAMPLES / "deployed_campaign" / "start.py"))
    designs = ">design-1\nSESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE\n"
    run = world.api.read_flow_run(example["main"](designs, "example", 5000))
    world.asleep(run)
    world.pay_invoices("example")
    world.advance(days=20)
    sweep(full_check_minutes=0)  # the account that the example loads names no webhook
    world.until(run, "Completed", seconds=200)
    assert len(world.orders("example")) == 1


@pytest.mark.usefixtures("time_passes")
def test_a_deployed_loop_has_a_schedule_and_learns_from_its_first_round(world):
    runpy.run_path(str(EXAMPLES / "scheduled_loop" / "deploy.py"))["main"]()
    deployment = world.api.read_deployment_by_name("design-build-test/stability")
    assert [schedule.schedule.cron for schedule in deployment.schedules] == ["0 6 * * 1-5"]
    run = run_deployment("design-build-test/stability", timeout=0)
    report = world.result(world.until(run, "Completed", seconds=300), LoopReport)
    assert [made.campaign_id for made in report.rounds] == ["stability-round-001", "stability-round-002"]
    assert len(world.orders("stability-")) == 2


def test_the_lab_in_tests_of_your_own_passes(world):
    played = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", "-c", os.devnull],
        cwd=EXAMPLES / "lab_in_tests",
        env=os.environ | {"PREFECT_API_URL": world.stack.api_url},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert played.returncode == 0, played.stdout + played.stderr
    assert "2 passed" in played.stdout


def test_the_notebook_reads_the_tables_of_an_archive(monkeypatch):
    monkeypatch.setenv("ASSAY_ARCHIVE", str(ROOT / "tests" / "golden" / "archive"))
    notebook = json.loads((EXAMPLES / "results_notebook" / "results.ipynb").read_text(encoding="utf-8"))
    names = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert names["best"]["name"].iloc[0] == "egf-variant-1"
    assert names["best"]["kd_M"].is_monotonic_increasing
    assert names["binding"].rows() == [("golden-affinity", 7, 2)]
    assert len(names["prices"]) == 7
