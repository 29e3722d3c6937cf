"""The page's commands fill a wheelhouse, and install from it without a package index. Filling it needs one."""

import os
import shlex
import subprocess
import sys

import pytest

from support.pages import ROOT, commands
from support.wheels import list_tracked

OFFLINE = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "0"}

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def run_pip(python, line, folder, **environment):
    program, *arguments = shlex.split(line)
    assert program == "pip"
    return subprocess.run(
        [python, "-m", "pip", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def test_a_wheelhouse_installs_without_an_index(tmp_path):
    download, build, install = [
        line for line in commands(ROOT / "docs" / "operating.md") if "wheelhouse" in line
    ]
    for name in list_tracked():
        if name.startswith("tests/"):
            continue
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    downloaded = run_pip(sys.executable, download, tmp_path)
    if "No matching distribution" in downloaded.stderr or "Connection" in downloaded.stderr:
        pytest.skip("no package index answers here")
    assert downloaded.returncode == 0, downloaded.stderr
    built = run_pip(sys.executable, build, tmp_path)
    assert built.returncode == 0, built.stderr

    subprocess.run([sys.executable, "-m", "venv", tmp_path / "offline"], check=True, timeout=60)
    python = tmp_path / "offline" / "bin" / "python"
    installed = run_pip(python, install, tmp_path, **OFFLINE)
    assert installed.returncode == 0, installed.stderr
    shown = subprocess.run(
        [python.parent / "prefect-assay", "--help"], capture_output=True, text=True, check=False, timeout=120
    )
    assert shown.returncode == 0, shown.stderr
    assert subprocess.run([python, "-c", "import assay_lab"], check=False, timeout=60).returncode == 0
