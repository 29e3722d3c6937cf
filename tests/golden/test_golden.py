"""A kept archive with one campaign of each assay type: everything derived comes out of it again, byte for byte.

`tests/support/golden/make.py` makes the archive. Plots and fits follow the versions of the lock.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from prefect_assay.analysis.report.contents import collect_contents
from prefect_assay.analysis.results import to_csv
from prefect_assay.archive import LocalStore, read_latest, verify_versions
from prefect_assay.archive.campaign_plan import Plan
from prefect_assay.archive.layout import (
    PLAN_CODE,
    PLAN_PATH,
    REPORT_CODE,
    TABLE_CODE,
    TABLE_PATH,
    safe_path,
    version_of,
)
from prefect_assay.designs.campaign import split_into_batches
from prefect_assay.designs.read import read_sequences
from prefect_assay.service.models.vocabulary import ExperimentType
from support.golden.make import PLAIN_CPU, designs_of

ROOT = Path(__file__).parents[2]
ARCHIVE = Path(__file__).parent / "archive"
DRAWN_WITH = ("numpy", "scipy", "jinja2")

kinds = pytest.mark.parametrize("kind", list(ExperimentType))


def campaign_of(kind):
    return f"golden-{kind.replace('_', '-')}"


def kept(kind, code):
    latest_version = read_latest(LocalStore(ARCHIVE), "", campaign_of(kind), code)
    assert latest_version is not None
    return latest_version


def of_the_lock():
    """Return what the pages name as their maker and is another one here: packages of the lock, and Python."""
    here = ".".join(map(str, sys.version_info[:2]))
    pins = {}
    for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines():
        if line.lstrip().startswith(("#", "--")):
            continue
        requirement = Requirement(line.rstrip(" \\"))
        if requirement.marker is None or requirement.marker.evaluate({"python_full_version": f"{here}.0"}):
            pins[requirement.name] = next(iter(requirement.specifier)).version
    page = kept(ExperimentType.EXPRESSION, REPORT_CODE).read("report.html").decode()
    python = platform.python_version()
    others = [] if f"Made with Python {python}," in page else [f"Python {python}"]
    return others + [f"{name} {version(name)}" for name in DRAWN_WITH if version(name) != pins[name]]


@pytest.fixture(scope="module")
def made_again(tmp_path_factory):
    """The archive without anything derived, and the reports made from it by the command, in processes of their own."""
    if other := of_the_lock():
        pytest.skip(f"golden files are compared in the locked environment only; here are {', '.join(other)}")
    folder = tmp_path_factory.mktemp("golden") / "archive"
    shutil.copytree(ARCHIVE, folder, ignore=shutil.ignore_patterns(REPORT_CODE, TABLE_CODE))
    program = (
        "import sys; from pathlib import Path; from prefect_assay.archive import LocalStore\n"
        "from prefect_assay.analysis.report.documents import make_report\n"
        "folder, *campaigns = sys.argv[1:]\n"
        "for campaign in campaigns:\n"
        "    for document in make_report(LocalStore(Path(folder)), '', campaign).documents:\n"
        "        path = Path(folder, 'made', campaign, document.path)\n"
        "        path.parent.mkdir(parents=True, exist_ok=True)\n"
        "        path.write_bytes(document.body)\n"
    )
    subprocess.run(
        [sys.executable, "-c", program, str(folder), *map(campaign_of, ExperimentType)],
        env={**os.environ, **PLAIN_CPU, "PYTHONHASHSEED": "7", "TZ": "Asia/Kolkata"},
        check=True,
    )
    return folder / "made"


@kinds
def test_report_plots_and_tables_are_made_again_byte_for_byte(kind, made_again):
    golden = kept(kind, REPORT_CODE)
    folder = made_again / campaign_of(kind)
    made = {
        safe_path(path.relative_to(folder).as_posix()): path for path in folder.rglob("*") if path.is_file()
    }
    expected = set(golden.files) - {"ro-crate-metadata.json"}
    assert set(made) == expected
    assert "report.html" in expected
    assert [path for path in sorted(expected) if made[path].read_bytes() != golden.read(path)] == []


@kinds
def test_the_tables_follow_from_the_raw_answers(kind):
    contents = collect_contents(LocalStore(ARCHIVE), "", campaign_of(kind))
    assert to_csv(contents.rows) == kept(kind, TABLE_CODE).read(TABLE_PATH)
    (experiment,) = contents.experiments
    assert to_csv(experiment.rows) == kept(kind, experiment.code).read(TABLE_PATH)


@kinds
def test_the_input_still_gives_the_plan_that_was_ordered(kind):
    plan = Plan.model_validate_json(kept(kind, PLAN_CODE).read(PLAN_PATH))
    (batch,) = split_into_batches(read_sequences(str(designs_of(kind))), plan.assay, per_experiment=96)
    (ordered,) = plan.experiments
    assert {s.name: s.aa_string for s in batch.items} == {
        name: value.aa_string for name, value in ordered.spec.sequences.items()
    }
    scored = kind is ExperimentType.AFFINITY
    assert plan.attributes.get("egf-variant-1", {}) == (
        {"ipTM": "0.60", "method": "mpnn", "round": "2", "parent": "EGF-wild-type"} if scored else {}
    )


@kinds
def test_the_archive_is_intact(kind):
    report = verify_versions(LocalStore(ARCHIVE), campaign_of(kind))
    assert report.ok, report.findings
    assert any(version_of(path.name) for path in (ARCHIVE / campaign_of(kind)).glob("*/v*"))


def test_no_log_names_a_place_of_the_machine_that_made_it():
    sources = [
        record["purchase"]["source"]
        for path in (ARCHIVE / "LEDGERS" / "CAMPAIGNS").rglob("*.json")
        if (record := json.loads(path.read_text(encoding="utf-8")))["kind"] == "offered"
    ]
    assert len(sources) == len(ExperimentType)
    assert all(source.startswith("/golden/") for source in sources)
