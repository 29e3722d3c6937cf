"""Runs that code starts: the example of docs/reference.md, what is refused, and the clients that Prefect generates."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest
from prefect.client.schemas.filters import TaskRunFilter, TaskRunFilterTags

from prefect_assay.blocks.block_references import as_parameter
from prefect_assay.blocks.deployment_runs import deployment_of, start_run
from prefect_assay.errors import ConfigurationError
from prefect_assay.service.models.spec import Assay, ExperimentSpec
from support.accounts import make_account, save_account
from support.runs.world import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

PAGE = (Path(__file__).parents[2] / "docs" / "reference.md").read_text(encoding="utf-8")
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


@pytest.fixture
def blocks(world):
    """The account, saved under the name of the page."""
    parts = {"credentials": world.credentials, "policy": world.policy, "archive": world.archive}
    return {"account": save_account(make_account(**parts), "main")}


def test_the_example_starts_a_campaign_without_a_secret_in_its_run(world, blocks):
    examples = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    (code,) = (code for code in examples if "run_deployment" in code)
    names = {}
    exec(compile(code, "docs/reference.md", "exec"), names)
    world.asleep(names["run"])
    parameters = str(world.run(names["run"]).parameters)
    assert "block_document_id" in parameters
    assert world.stack.lab.token not in parameters
    assert len(world.orders("from-code")) == 1


def test_mapped_estimates_are_limited_by_a_tag_and_told_apart_while_the_loop_goes_on(world, blocks):
    (code,) = (c for c in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL) if ".map(" in c)
    found = {}
    exec(compile(code, "docs/reference.md", "exec"), found)
    world.api.create_concurrency_limit("assay-service", 2)
    designs = [{f"d{i}": {"aa_string": f"MKVLATRGN{'ACDEFG'[i]}"} for i in range(n)} for n in range(1, 7)]
    specs = [
        ExperimentSpec.model_validate({"experiment_type": "expression", "sequences": d}) for d in designs
    ]

    async def beside():
        priced = asyncio.create_task(asyncio.to_thread(found["prices"], world.credentials, specs))
        turns = 0
        while not priced.done():
            turns += 1
            await asyncio.sleep(
                0.01
            )  # a loop that spins would take the interpreter from the threads of the flow
        return await priced, turns

    costs, turns = asyncio.run(beside())
    assert costs == sorted(costs)
    assert turns > len(specs)
    told = {f"estimate-cost-{n}-designs" for n in range(1, 7)}
    eventually(
        lambda: {name.rpartition("-")[0] for name in estimates(world)} == told,
        seconds=60,
        what="six task runs under names of their own",
    )


def estimates(world):
    """The names of the limited task runs; Prefect's server records a run, then its own name, a little later."""
    tagged = TaskRunFilter(tags=TaskRunFilterTags(all_=["assay-service"]))
    return {run.name for run in world.api.read_task_runs(task_run_filter=tagged)}


def test_what_cannot_be_started_is_refused_in_words(blocks):
    parameters = {"designs": ">a\nMKV\n", "assay": Assay(), **blocks}
    with pytest.raises(ConfigurationError, match=r"'assay.target'.* None is not of type 'string'"):
        start_run(deployment_of("campaign"), parameters)
    with pytest.raises(ConfigurationError, match="AssayAccount block of this run is not saved"):
        start_run(deployment_of("campaign"), parameters | {"account": make_account()})


@pytest.mark.long
def test_generated_clients_are_typed_and_start_a_campaign(world, blocks, tmp_path, monkeypatch):
    command = [sys.executable, "-m", "prefect", "sdk", "generate", "--output", "assay_sdk.py"]
    monkeypatch.setenv("PREFECT_API_URL", world.stack.api_url)
    subprocess.run(command, cwd=tmp_path, check=True, timeout=120, capture_output=True)
    (tmp_path / "uses.py").write_text(USES_CLIENT)
    checked = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "."],
        cwd=tmp_path,
        timeout=180,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout
    monkeypatch.syspath_prepend(tmp_path)
    start = __import__("uses").start
    given = {name: as_parameter(block) for name, block in blocks.items()}
    designs = ">a\nSESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE\n"
    run = world.api.read_flow_run(
        start(
            designs, {"experiment_type": "screening", "target": "Human EGFR, extracellular domain"}, **given
        )
    )
    world.asleep(run)
    assert run.deployment_id is not None
    assert len(world.orders("from-sdk")) == 1
