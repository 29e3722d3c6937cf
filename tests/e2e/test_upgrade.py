"""An upgrade in the middle of a wait: begun under one version, ended by another process under the next one.

From the baseline, an earlier commit, to this version; and from this version to a changed one: a real copy of the package with
other task sources, another flow source and one parameter more. The next version's process has another Prefect home and other,
empty result storage.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import prefect_assay
from prefect_assay import blocks, deployments, flows, tasks
from prefect_assay.archive import LocalStore, verify
from prefect_assay.blocks import SpendingPolicy
from support.runs.world import a_world, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(600)]

BINDER = "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR"
ROOT = Path(__file__).parents[2]
BEGIN = "    if current_run.id is None"
# Runs that this commit suspended end under the present one: docs/upgrading.md promises it from here on.
BASELINE = os.environ.get("ASSAY_UPGRADE_FROM", "116e930e0e44da78ccaccca23be7192b6ece49ae")
RAN_UNDER_NEXT = "ran-under-the-next-version"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with a_world(tmp_path_factory.mktemp("upgrade")) as made:
        yield made


def source_of(package) -> Path:
    return Path(package.__file__).resolve().parent


def next_version(folder: Path) -> Path:
    """A copy of the package with changed sources; returns what goes into PYTHONPATH."""
    package = folder / "prefect_assay"
    compiled = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source_of(prefect_assay), package, ignore=compiled)
    for part in (blocks, deployments, flows, tasks):
        shutil.copytree(source_of(part), package / part.__name__.rpartition(".")[2], ignore=compiled)

    # Each task's source text is another one, which Prefect's default cache policy takes for another task.
    changed = 0
    for file in (package / "tasks").glob("*.py"):
        text = file.read_text(encoding="utf-8")
        text, count = re.subn(
            r'(^@task.*?^def .*?^    """)', r"\1In the next version: ", text, flags=re.MULTILINE | re.DOTALL
        )
        file.write_text(text, encoding="utf-8")
        changed += count
    assert changed >= len(tasks.__all__)

    for name in ("experiment", "campaign"):
        file = package / "flows" / f"{name}.py"
        text = file.read_text(encoding="utf-8")
        added = r"\1    new_option: str | None = None,\n\2"
        text, count = re.subn(
            rf"(^def {name}\(.*?)(^\) ->)", added, text, count=1, flags=re.MULTILINE | re.DOTALL
        )
        assert count == 1
        file.write_text(text, encoding="utf-8")

    # Every execution leaves a trace of the version that it ran under.
    file = package / "runs" / "crashes.py"
    text = file.read_text(encoding="utf-8")
    assert text.count(BEGIN) == 1
    trace = f"    tags.add_tags(current_run.id, [{RAN_UNDER_NEXT!r}])\n"
    text = text.replace(BEGIN, trace + BEGIN) + "\n\nfrom prefect_assay.runs import tags\n"
    file.write_text(text, encoding="utf-8")
    return folder


def has_baseline():
    """A shallow clone may lack it."""
    found = subprocess.run(
        ["git", "cat-file", "-e", f"{BASELINE}^{{commit}}"], cwd=ROOT, check=False, capture_output=True
    )
    return found.returncode == 0


def baseline_version(folder: Path) -> Path:
    """The package as it was at the baseline, which notes that its flows were imported; returns PYTHONPATH."""
    checkout = folder / "checkout"
    checkout.mkdir(parents=True)
    packed = subprocess.run(["git", "archive", BASELINE], cwd=ROOT, check=True, capture_output=True)
    subprocess.run(["tar", "--extract"], cwd=checkout, input=packed.stdout, check=True)
    package = folder / "prefect_assay"
    shutil.copytree(checkout / "src" / "prefect_assay", package)
    for part in ("blocks", "deployments", "flows", "tasks"):
        shutil.copytree(checkout / part, package / part)
    with (package / "flows" / "__init__.py").open("a", encoding="utf-8") as file:
        file.write("\nfrom pathlib import Path\n\nPath(__file__).with_name('imported').touch()\n")
    return folder


def deployed_parameters(world) -> set[str]:
    deployment = world.api.read_deployment_by_name("experiment/assay-experiment")
    return set(deployment.parameter_openapi_schema["properties"])


def test_a_campaign_begun_under_one_version_ends_under_the_next(world):
    run = world.campaign(world.designs("upgraded", BINDER), campaign_id="upgraded")
    (child,) = world.suspended_children("upgraded", seconds=150)
    world.asleep(run, seconds=150)
    creates, before = world.creates(), {run.id: world.history(run), child.id: world.history(child)}
    world.stack.stop_runner()

    other = {
        "PYTHONPATH": str(next_version(world.folder / "next")),
        "PREFECT_HOME": str(world.folder / "next-home"),
        "PREFECT_LOCAL_STORAGE_PATH": str(world.folder / "next-results"),
    }
    world.stack.env.update(other)
    shutil.rmtree(world.folder / "results", ignore_errors=True)  # a suspended run need not have left any
    world.stack.start_runner()  # deploys its version's flows
    eventually(lambda: deployed_parameters(world) > {"new_option"}, seconds=150, what="the next version")
    assert {run.id: world.history(run), child.id: world.history(child)} == before  # upgrading wakes nobody

    world.advance(days=16)
    ended = world.until(child, "Completed", seconds=150)
    done = world.until(run, "Completed", seconds=150)

    assert RAN_UNDER_NEXT in ended.tags
    assert RAN_UNDER_NEXT in done.tags
    assert "results of 1 of 1 experiment" in done.state.message
    assert world.creates() == creates == 1
    assert len(world.orders("upgraded")) == 1
    assert len(world.settlements("upgraded")) == 1
    report = verify(LocalStore(world.folder / "archive"))
    assert report.ok
    assert report.versions >= 1


@pytest.mark.skipif(not has_baseline(), reason=f"this clone has no commit {BASELINE}")
def test_runs_that_the_baseline_suspended_end_under_this_version(world):
    earlier = baseline_version(world.folder / "earlier")
    world.stack.stop_runner()
    world.stack.env["PYTHONPATH"] = str(earlier)
    world.stack.start_runner()
    SpendingPolicy(
        per_experiment_cents=100,
        per_campaign_cents=5_000_000,
        machine_payments=True,
        rolling_cents=50_000_000,
    ).save("asks")

    run = world.campaign(world.designs("before", BINDER), campaign_id="before")
    eventually(lambda: world.children("before"), seconds=150, what="the campaign's experiment")
    (child,) = world.children("before")
    asking = world.experiment("asking", BINDER[:-1], policy=SpendingPolicy.load("asks"))
    for waiting in (child, run, asking):
        world.asleep(waiting, seconds=150)  # Prefect's runner cancels a run whose process it stops
    assert world.run(asking).state.state_details.run_input_keyset
    assert (earlier / "prefect_assay" / "flows" / "imported").is_file()

    before = world.creates()
    world.stack.stop_runner()

    del world.stack.env["PYTHONPATH"]
    world.stack.start_runner()
    world.api.resume_flow_run(asking.id, run_input={"decision": "approve"})
    eventually(lambda: world.creates() == before + 1, seconds=150, what="the approved order")
    world.until(asking, "Suspended", seconds=150)
    world.advance(days=16)
    for waiting in (child, run, asking):
        world.until(waiting, "Completed", seconds=150)
    assert world.creates() == before + 1
    assert len(world.settlements("before")) == len(world.settlements("asking")) == 1
