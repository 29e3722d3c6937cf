"""Commands that set up or start something are for a server that stays, not for one that Prefect starts for a moment."""

import os
import subprocess
import sys

import pytest

DESIGNS = ">a\nSESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE\n"
RUN = ("run", "designs.fasta", "--type", "thermostability")
BLOCKS = ("--credentials", "c", "--policy", "p", "--archive", "a")


def command(folder, *arguments):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    return subprocess.run(
        [sys.executable, "-m", "prefect_assay.cli", *arguments],
        env=clean | {"PREFECT_HOME": str(folder / "prefect"), "COLUMNS": "200"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize(
    "arguments",
    [("register",), ("deploy",), ("deploy", "--check"), ("deploy", "--serve"), ("worker",), RUN + BLOCKS],
    ids=" ".join,
)
def test_without_a_server_nothing_is_set_up_or_started(tmp_path, arguments):
    (tmp_path / "designs.fasta").write_text(DESIGNS)
    done = command(tmp_path, *arguments)
    assert done.returncode == 1, done.stderr
    assert "no Prefect API is configured" in done.stderr
    assert "prefect config set PREFECT_API_URL=" in done.stderr
    assert not (tmp_path / "prefect" / "prefect.db").exists()


@pytest.mark.parametrize("option", ["--check", "--json"])
def test_serving_takes_no_option_that_it_would_ignore(tmp_path, option):
    done = command(tmp_path, "deploy", "--serve", option)
    assert done.returncode == 2
    assert "leave out --check and --json" in done.stderr
