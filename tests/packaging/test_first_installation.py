"""`make install` on a machine without a package index: each step is announced, and the failure is explained."""

import os
import shutil
import subprocess
import sys

import pytest

from support.pages import ROOT

pytestmark = pytest.mark.timeout(300)


def test_without_a_package_index_the_failure_is_explained(tmp_path):
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "lab").mkdir()
    shutil.copy(ROOT / "lab" / "pyproject.toml", tmp_path / "lab")
    (tmp_path / "wheels").mkdir()
    no_index = {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path / "wheels"),
        "PIP_CONFIG_FILE": os.devnull,
    }
    done = subprocess.run(
        ["make", "install", f"PYTHON={sys.executable}"],
        cwd=tmp_path,
        env={**os.environ, **no_index, "PIP_RETRIES": "0", "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    printed = done.stdout + done.stderr
    for step in ("setting up .venv", "1 of 4", "2 of 4", "3 of 4", "pip installs them without uv"):
        assert step in printed
    assert "could not be installed. Is there a network, and a package index?" in printed
    assert '"conflicting dependencies"' in printed
    assert "PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER make install" in printed
    assert not (tmp_path / ".venv" / ".installed").exists()
