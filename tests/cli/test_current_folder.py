"""No child process runs a file of the current folder, where anybody may have put one."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import prefect_assay
from assay_lab.testing import LocalLab


@pytest.fixture
def poisoned(tmp_path, monkeypatch):
    """A folder whose files leave a mark when they are imported in the place of modules."""
    folder = tmp_path / "work"
    folder.mkdir()
    for name in ("secrets", "prefect", "httpx", "uvicorn"):
        mark = str(tmp_path / f"ran-{name}")
        (folder / f"{name}.py").write_text(f"open({mark!r}, 'w').close()\nraise SystemExit(3)\n")
    monkeypatch.chdir(folder)
    yield folder
    assert [path.name for path in tmp_path.glob("ran-*")] == []


def test_the_lab_starts_in_a_folder_with_modules_of_others(poisoned):
    with LocalLab() as lab:
        assert lab.clock()["organization_id"]


@pytest.mark.parametrize("command", ["console script", "module"])
def test_the_lab_command_starts_in_such_a_folder(poisoned, command):
    script = Path(sys.executable).with_name("prefect-assay")
    program = [str(script)] if command == "console script" else [sys.executable, "-m", "prefect_assay.cli"]
    process = subprocess.Popen([*program, "lab", "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        assert "http://" in "".join(process.stdout.readline() for _ in range(3))
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_every_child_of_the_product_ignores_the_current_folder():
    package = Path(prefect_assay.__file__).parent
    source = "".join(path.read_text() for path in package.rglob("*.py"))
    starts = re.findall(r"\[sys\.executable, ([^\]]*)", source)
    assert len(starts) >= 6
    assert [start for start in starts if not start.startswith(('"-P"', '"-I"'))] == []
