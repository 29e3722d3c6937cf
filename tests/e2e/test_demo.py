"""The demo as a user runs it: a real process, twice, interrupted, and with a part that dies."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import psutil
import pytest

from prefect_assay.local.processes import command_of, list_descendants

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

SECONDS = 600


@pytest.fixture
def demo(tmp_path):
    """Starts demos in a fresh folder; their machinery goes to a folder of its own, where leftovers show."""
    machinery = tmp_path / "machinery"
    machinery.mkdir()
    started: list[subprocess.Popen] = []

    def start(*arguments, **env):
        process = subprocess.Popen(
            [sys.executable, "-m", "prefect_assay.cli", "demo", *arguments],
            cwd=tmp_path,
            # settings of a user that must be neither used nor touched
            env={
                **os.environ,
                "TMPDIR": str(machinery),
                "PREFECT_API_URL": "http://127.0.0.1:9/api",
                "PREFECT_HOME": str(tmp_path / "users-own"),
                "PYTHONUNBUFFERED": "1",
                **env,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.terminate()
            process.communicate(timeout=60)


def _read_until(process, text, seconds=SECONDS):
    deadline = time.monotonic() + seconds
    seen = ""
    while time.monotonic() < deadline:
        line = process.stdout.readline()
        assert line, f"ended without {text!r}:\n{seen}"
        seen += line
        if text in line:
            return seen
    raise AssertionError(f"no {text!r} in {seconds} s:\n{seen}")


def _left_behind(machinery: Path) -> list[str]:
    """Commands of processes that still belong to a demo of this test, wherever they hang in the table."""
    return [
        " ".join(process.info["cmdline"] or ())
        for process in psutil.process_iter(["cmdline", "environ", "status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE
        and any(value.startswith(str(machinery)) for value in (process.info["environ"] or {}).values())
    ]


@pytest.mark.long
def test_interrupted_then_run_again_to_a_verified_archive_and_kept_up(demo, tmp_path):
    machinery = tmp_path / "machinery"
    first = demo()
    _read_until(first, "are up")
    assert len(list_descendants(first.pid)) >= 4
    first.send_signal(signal.SIGINT)
    output, _ = first.communicate(timeout=60)
    assert first.returncode == 130
    assert "Everything has stopped" in output
    assert _left_behind(machinery) == []
    assert list(machinery.iterdir()) == []

    second = demo("--keep")
    output = _read_until(second, "prefect-assay status")
    row = next(line for line in output.splitlines() if "P01133-971-1023" in line)
    kd = float(re.search(r"([\d.]+) nM", row)[1])
    assert 60 < kd < 130  # published: 9e-8 M
    results, _, report = output.partition("\nReport ")
    assert sum("no binding" in line for line in results.splitlines()) == 10
    page = tmp_path / "assay-demo" / "2" / "archive" / "egfr-round1" / "REPORT" / "v001" / "report.html"
    assert f"report: {page.relative_to(tmp_path)}" in report
    assert "prefect-assay report egfr-round1 assay-demo/2/archive --open" in report
    assert "P01133-971-1023" in page.read_text(encoding="utf-8")
    assert re.search(r"archive verify: assay-demo/2/archive: intact; \d+ files", output)
    assert "[dim]" not in output  # markup is shown as style
    assert "is Suspended" in output
    assert re.search(r"below the serving process \d+: 0", output)
    assert "POST …/pay answered 402, then 200" in output
    assert "Running > Suspended > Resuming > Running" in output
    assert (
        tmp_path / "assay-demo" / "2" / "archive" / "egfr-round1" / "TABLE" / "v001" / "results.csv"
    ).exists()
    _printed_commands_work(output, tmp_path)
    _everything_stays_up_until_a_part_dies(second, output.partition("Look")[2])
    assert _left_behind(machinery) == []
    assert not (tmp_path / "users-own").exists()


def _printed_commands_work(output, folder):
    """Paste each command that the demo has printed, as a person does."""
    printed = re.findall(
        r"^ *(?:open it: )?((?:PREFECT_API_URL=\S+ )?prefect-assay .*?)(?:  .*)?$", output, re.MULTILINE
    )
    assert [re.search("prefect-assay ([a-z]+)", line)[1] for line in printed] == ["report", "status"]
    for line in [*printed, "prefect-assay designs check assay-demo/2/designs.fasta"]:
        assignments, _, words = line.rpartition("prefect-assay ")
        env = dict(one.split("=", 1) for one in assignments.split())
        done = subprocess.run(
            [sys.executable, "-m", "prefect_assay.cli", *shlex.split(words)],
            cwd=folder,
            env={**os.environ, "PREFECT_HOME": str(folder / "other-home"), "BROWSER": "true", **env},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"


def _everything_stays_up_until_a_part_dies(process, look):
    addresses = re.findall(r"http://\S+", look)
    assert len(addresses) == 6
    for address in addresses[:5]:
        shown = httpx.get(address, headers={"Accept": "text/html"}, trust_env=False)
        assert shown.status_code == 200, address

    runner = next(
        one for one in list_descendants(process.pid) if "prefect_assay.local.runner" in command_of(one)
    )
    os.kill(runner.pid, signal.SIGKILL)
    output, _ = process.communicate(timeout=90)
    assert process.returncode == 1
    assert "runner has ended" in output
    log = re.search(r"its log (\S+runner\.log)", output)[1]
    assert Path(log).exists()
    assert "Traceback" not in output.partition("The end of its log")[0]


@pytest.mark.parametrize(
    ("processes", "number", "code"),
    [(1, signal.SIGTERM, 143), (2, signal.SIGINT, 130), (4, signal.SIGHUP, 129)],
)
def test_a_signal_while_it_starts_leaves_nothing_running(demo, tmp_path, processes, number, code):
    process = demo()
    deadline = time.monotonic() + 60
    while len(list_descendants(process.pid)) < processes:  # of server, flows, lab, receiver
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == code
    assert _left_behind(tmp_path / "machinery") == []
