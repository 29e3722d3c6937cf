"""What docs/loops.md shows about starting a loop, against a real server, lab and worker: command, script, deployment, bucket."""

import re
import shlex
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from pathlib import Path

import pytest
from prefect.deployments import run_deployment

from prefect_assay import flows
from prefect_assay.campaigns.flow_results import LoopReport
from prefect_assay.campaigns.loops import LoopBook
from prefect_assay.flows import sweep
from support.archive.stores import bucket_store
from support.archive.swift_server import ACCESS_KEY, SECRET_KEY
from support.command import command
from support.runs.world import EGFR, a_world, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(600)]

PAGE = (Path(__file__).parents[2] / "docs" / "loops.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```(?:python|console)\n(.*?)```", PAGE, re.DOTALL)


def example(word):
    (found,) = [text for text in EXAMPLES if word in text]
    return found


@pytest.fixture(scope="module")
def storage(swift_endpoint):
    return {
        "AWS_ENDPOINT_URL": swift_endpoint,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
    }


@pytest.fixture(scope="module")
def world(tmp_path_factory, storage):
    folder = tmp_path_factory.mktemp("loop-examples")
    package = folder / "modules" / "my_package"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "designers.py").write_text(example("Point mutants"))
    env = storage | {"PYTHONPATH": str(package.parent), "PREFECT_RUNNER_POLL_FREQUENCY": "1"}
    with a_world(folder, stack_options={"env": env, "runner": "worker"}) as made:
        made.save_documented_blocks()
        yield made


@pytest.fixture
def days_pass(world):
    """Lab days pass, a person pays the invoices, and sweeps run, while the test waits. The examples name no webhook."""
    stop = threading.Event()

    def go_on():
        while not stop.wait(2):
            world.pay_invoices("egfr-")
            world.advance(days=4)
            sweep(full_check_minutes=0)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(copy_context().run, go_on)
        yield
        stop.set()
        done.result()


def orders(world):
    """The orders of the example's rounds, by campaign."""
    return sorted(order.name.split()[0] for order in world.orders("egfr-round-"))


@pytest.mark.usefixtures("days_pass")
def test_the_command_and_the_script_are_one_loop(world, monkeypatch, capsys):
    lines = example("prefect-assay loop egfr").replace("\\\n", " ").splitlines()
    (loop, status) = [shlex.split(line)[1:] for line in lines if line]
    begun = command(*loop, "--json", cwd=world.folder, PREFECT_API_URL=world.stack.api_url)
    assert begun.code == 0, begun.err
    run = world.api.read_flow_run(begun.json()["flow_run_id"])
    report = world.result(world.until(run, "Completed", seconds=400), LoopReport)
    assert report.stop == "budget", report
    ordered = orders(world)
    assert [r.campaign_id for r in report.rounds] == ["egfr-round-001", "egfr-round-002"]
    shown = command(*status, PREFECT_API_URL=world.stack.api_url)
    assert shown.code == 0, shown.err
    assert "egfr-round-002" in shown.out

    # The same loop with another archive: the rounds are proposed and found again, and nothing is ordered twice.
    monkeypatch.setenv("HOME", str(world.folder / "home"))
    monkeypatch.syspath_prepend(world.folder / "modules")
    monkeypatch.setattr(flows, "design_build_test", partial(flows.design_build_test, poll_seconds=0.5))
    program = example("print(report.stopped")
    exec(compile(program, "docs/loops.md", "exec"), {})
    assert report.stopped in capsys.readouterr().out
    assert orders(world) == ordered


@pytest.mark.usefixtures("days_pass")
def test_a_deployment_of_its_own_has_the_loops_parameters_and_a_schedule(world):
    folder = world.folder / "designs"
    folder.mkdir()
    (folder / "round-a.fasta").write_text(">a\nMKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQ\n")
    program = example('"source": "/data/designs"').replace("/data/designs", str(folder))
    exec(
        compile(program.replace('"loop_id": "egfr"', '"loop_id": "egfr-files"'), "docs/loops.md", "exec"), {}
    )
    deployment = world.api.read_deployment_by_name("design-build-test/egfr")
    assert [schedule.schedule.cron for schedule in deployment.schedules] == ["0 6 * * 1-5"]
    run = run_deployment("design-build-test/egfr", timeout=0)
    report = world.result(world.until(run, "Completed", seconds=200), LoopReport)
    assert [r.campaign_id for r in report.rounds] == ["egfr-files-round-a"]
    assert len(world.orders("egfr-files-")) == 1


@pytest.mark.usefixtures("days_pass")
def test_a_loop_waits_for_the_next_object_of_a_bucket(world, swift_endpoint, storage, monkeypatch):
    for name, value in storage.items():
        monkeypatch.setenv(name, value)  # the sweep runs in this process
    store = bucket_store(swift_endpoint)
    assert store.put_if_absent("rounds/first.fasta", b">a\nMKTAYIAKQRQISFVKSHFSRQLEERLGLIEV\n", "text/plain")
    parameters = world.shared() | {
        "loop_id": "egfr-bucket",
        "source": f"s3://{store.bucket}/rounds/",
        "assay": {"experiment_type": "affinity", "method": "bli", "target": EGFR},
        "max_rounds": 2,
        "wait_days": 30,
    }
    run = world.start("design-build-test", **parameters)

    def rounds():
        return LoopBook(world.archive.get_store(), world.archive.prefix, "egfr-bucket").read().rounds

    eventually(lambda: [entry.ended for entry in rounds()], seconds=200, what="the first round to be fixed")
    eventually(lambda: all(entry.ended for entry in rounds()), seconds=200, what="the first round to end")
    world.until(run, "Suspended")
    assert store.put_if_absent("rounds/second.fasta", b">b\nMKTAYIAKQRQISFVKSHFSRQLEERLGLIEW\n", "text/plain")
    # Another start has the run look at once, in place of its next look.
    other = world.start("design-build-test", **parameters)
    world.until(other, "RunsElsewhere", seconds=100)
    report = world.result(world.until(run, "Completed", seconds=300), LoopReport)
    assert [r.campaign_id for r in report.rounds] == ["egfr-bucket-first", "egfr-bucket-second"]
    assert [order.name.split()[0] for order in world.orders("egfr-bucket-")].count("egfr-bucket-second") == 1
    assert len(world.orders("egfr-bucket-")) == 2
