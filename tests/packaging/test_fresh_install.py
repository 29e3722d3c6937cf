"""The wheel beside a fresh Prefect: installing it changes no package that is there. Needs a package index."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PREFECT = "prefect==3.9.1"  # the lowest that this package takes

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


def uv(*arguments):
    command = [sys.executable, "-m", "uv", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_installing_the_wheel_changes_nothing_that_is_there(tmp_path):
    made = uv("build", "--wheel", "--out-dir", tmp_path, ROOT)
    if "Failed to fetch" in made.stderr:
        pytest.skip("no package index answers here")
    assert made.returncode == 0, made.stderr
    (wheel,) = tmp_path.glob("prefect_assay-*.whl")
    fresh = tmp_path / "fresh"
    assert uv("venv", "--python", sys.executable, fresh).returncode == 0
    prefect = uv("pip", "install", "--python", fresh, PREFECT)
    assert prefect.returncode == 0, prefect.stderr
    before = versions(fresh)
    assert {"prefect", "sqlalchemy"} <= before.keys()

    installed = uv("pip", "install", "--python", fresh, wheel)
    assert installed.returncode == 0, installed.stderr
    after = versions(fresh)
    assert "prefect-assay" in after
    assert {name: after.get(name) for name in before} == before


def versions(environment):
    """The version of each installed package."""
    lines = uv("pip", "freeze", "--python", environment).stdout.splitlines()
    return dict(line.replace(" @ ", "==").split("==", 1) for line in lines)
