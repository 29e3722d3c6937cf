"""The examples of the pages are executed as they stand: README, quick start, reference and loops."""

import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.filters import TaskRunFilter, TaskRunFilterTags

from prefect_assay import flows
from prefect_assay.blocks.block_references import as_parameter
from prefect_assay.blocks.deployment_runs import deployment_of, start_run
from prefect_assay.campaigns.flow_results import LoopReport
from prefect_assay.errors import ConfigurationError
from prefect_assay.service.models.spec import Assay, ExperimentSpec
from support.accounts import make_account
from support.command import command
from support.pages import QUICK_START, README, ROOT, blocks
from support.runs.world import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

BINDER = "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR"
OTHER = "SESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE"


def find_example(page, word, language="python"):
    """The one example of a page in docs/ with this word."""
    (example,) = [text for text in blocks(ROOT / "docs" / page, language) if word in text]
    return example


def execute(example):
    """The names that it defines."""
    names = {}
    exec(example, names)
    return names


@pytest.fixture
def account(world):
    """The account, saved under the name that the pages use."""
    return world.save_documented_blocks()


def test_readme_without_an_account(world, monkeypatch, tmp_path, capsys):
    (example,) = blocks(README, "python")
    monkeypatch.chdir(tmp_path)
    execute(example.replace("lab/src/", f"{ROOT}/lab/src/"))
    table, report = (Path(path) for path in capsys.readouterr().out.split()[-2:])
    assert len(table.read_text().splitlines()) > 11
    assert table.is_relative_to(tmp_path / "assay-archive")
    assert report.is_file()


@pytest.mark.usefixtures("account", "time_passes")
def test_quick_start(monkeypatch, tmp_path, capsys):
    (example,) = blocks(QUICK_START, "python")
    (tmp_path / "designs.fasta").write_text(f">readme\n{BINDER}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    execute(example)
    table = Path(capsys.readouterr().out.strip().splitlines()[-1])
    assert "readme" in table.read_text()


@pytest.mark.usefixtures("account")
def test_a_run_is_started_from_code_without_a_secret_in_it(world):
    run = execute(find_example("reference.md", "run_deployment"))["run"]
    world.asleep(run)
    parameters = str(world.run(run).parameters)
    assert "block_document_id" in parameters
    assert world.stack.lab.token not in parameters
    assert len(world.orders("from-code")) == 1


def test_what_cannot_be_started_is_refused_in_words(account):
    parameters = {"designs": ">a\nMKV\n", "assay": Assay(), "account": account}
    with pytest.raises(ConfigurationError, match=r"'assay.target'.* None is not of type 'string'"):
        start_run(deployment_of("campaign"), parameters)
    with pytest.raises(ConfigurationError, match="AssayAccount block of this run is not saved"):
        start_run(deployment_of("campaign"), parameters | {"account": make_account()})


def test_mapped_estimates_are_limited_by_a_tag(world):
    prices = execute(find_example("reference.md", ".map("))["prices"]
    world.api.create_concurrency_limit("assay-service", 2)
    designs = [{f"d{i}": {"aa_string": f"MKVLATRGN{'ACDEFG'[i]}"} for i in range(n)} for n in range(1, 7)]
    specs = [
        ExperimentSpec.model_validate({"experiment_type": "expression", "sequences": d}) for d in designs
    ]
    costs = prices(world.credentials, specs)
    assert costs == sorted(costs)
    tagged = TaskRunFilter(tags=TaskRunFilterTags(all_=["assay-service"]))
    # Prefect's server records a run, and a little later its name.
    eventually(
        lambda: (
            {run.name.rpartition("-")[0] for run in world.api.read_task_runs(task_run_filter=tagged)}
            == {f"estimate-cost-{n}-designs" for n in range(1, 7)}
        ),
        seconds=60,
        what="six task runs under names of their own",
    )


USES_CLIENT = """
from typing import Any
from assay_sdk import deployments

def start(designs: str, assay: dict[str, Any], account: Any) -> str:
    made = deployments.from_name("campaign/assay-campaign").with_options(as_subflow=False)
    run = made.run(
        designs=designs, assay=assay, account=account, spend_up_to_usd=5000, campaign_id="from-sdk",
    )
    return str(run.flow_run_id)
"""


@pytest.mark.long
def test_generated_clients_are_typed_and_start_a_campaign(world, account, tmp_path, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", world.stack.api_url)
    (tmp_path / "uses.py").write_text(USES_CLIENT)
    for tool in (
        ["prefect", "sdk", "generate", "--output", "assay_sdk.py"],
        ["pyright", "--pythonpath", sys.executable, "."],
    ):
        done = subprocess.run(
            [sys.executable, "-m", *tool], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    monkeypatch.syspath_prepend(tmp_path)
    assay = {"experiment_type": "screening", "target": "Human EGFR, extracellular domain"}
    run = world.api.read_flow_run(__import__("uses").start(f">a\n{OTHER}\n", assay, as_parameter(account)))
    world.asleep(run)
    assert run.deployment_id is not None
    assert len(world.orders("from-sdk")) == 1


@pytest.mark.long
@pytest.mark.usefixtures("account", "time_passes")
def test_jobs_order_once_and_give_tables(world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("designs.fasta").write_text(f">binder\n{BINDER}\n>other\n{OTHER}\n")
    names = {}
    exec(find_example("reference.md", "def measure"), names)
    measured = names["measure"]()
    assert "binder" in measured
    assert names["measure"]() == measured
    assert len(world.orders("binders-1")) == 1


@pytest.mark.long
@pytest.mark.usefixtures("account", "time_passes")
def test_a_loop_by_command_and_by_script_is_one_loop(world, monkeypatch, capsys):
    package = world.folder / "modules" / "my_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "designers.py").write_text(find_example("loops.md", "Point mutants"))
    lines = find_example("loops.md", "prefect-assay loop egfr --designer", "console")
    loop, status = [shlex.split(line)[1:] for line in lines.replace("\\\n", " ").splitlines() if line]
    begun = command(*loop, "--json", cwd=world.folder, **world.stack.env)
    assert begun.code == 0, begun.err
    run = world.api.read_flow_run(begun.json()["flow_run_id"])
    report = world.result(world.until(run, "Completed", seconds=400), LoopReport)
    assert report.stop_reason == "budget", report
    ordered = sorted(order.name for order in world.orders("egfr-round-"))
    assert [r.campaign_id for r in report.rounds] == ["egfr-round-001", "egfr-round-002"]
    shown = command(*status, **world.stack.env)
    assert shown.code == 0, shown.err
    assert "egfr-round-002" in shown.out

    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.setattr(flows, "design_build_test", partial(flows.design_build_test, poll_seconds=0.5))
    execute(find_example("loops.md", "print(report.stop_message"))
    assert report.stop_message in capsys.readouterr().out
    assert sorted(order.name for order in world.orders("egfr-round-")) == ordered


@pytest.mark.usefixtures("account")
def test_a_deployment_of_its_own_has_the_loops_parameters_and_a_schedule(world):
    world.api.create_work_pool(WorkPoolCreate(name="assay", type="process"))
    execute(find_example("loops.md", '"source": "/data/designs"'))
    deployment = world.api.read_deployment_by_name("design-build-test/egfr")
    assert [schedule.schedule.cron for schedule in deployment.schedules] == ["0 6 * * 1-5"]
    assert deployment.parameters["loop_id"] == "egfr"
    world.api.delete_deployment(deployment.id)
