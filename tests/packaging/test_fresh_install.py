"""The wheel beside a fresh Prefect: installing it changes no package that is there. Needs a package index."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PREFECT = "prefect==3.9.1"  # the lowest that this package takes

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def pip(python, *arguments):
    command = [python, "-m", "pip", *arguments, "--disable-pip-version-check", "--quiet"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def test_installing_the_wheel_changes_nothing_that_is_there(tmp_path):
    built = pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT))
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("prefect_assay-*.whl")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "fresh"], check=True, timeout=120)
    python = tmp_path / "fresh" / "bin" / "python"
    prefect = pip(python, "install", PREFECT)
    if "No matching distribution" in prefect.stderr or "Could not find a version" in prefect.stderr:
        pytest.skip(f"no package index here has {PREFECT}")
    assert prefect.returncode == 0, prefect.stderr
    there = {each["name"] for each in json.loads(pip(python, "list", "--format", "json").stdout)}
    assert {"prefect", "SQLAlchemy"} <= there

    report = tmp_path / "report.json"
    wanted = pip(python, "install", "--dry-run", "--report", str(report), str(wheel))
    assert wanted.returncode == 0, wanted.stderr
    installed = {each["metadata"]["name"] for each in json.loads(report.read_text())["install"]}
    assert "prefect-assay" in installed
    assert {name for name in installed if normal(name) in set(map(normal, there))} == set()


def normal(name):
    return name.lower().replace("_", "-").replace(".", "-")
