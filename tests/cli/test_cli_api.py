"""Commands that change a Prefect server refuse the temporary one that Prefect starts where no API is configured."""

import os
import subprocess
import sys

import pytest

from support.command import command

DESIGNS = ">a\nSESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE\n"
RUN = ("run", "designs.fasta", "--type", "thermostability")


@pytest.mark.parametrize(
    "arguments",
    [
        ("register",),
        ("deploy",),
        ("deploy", "--check"),
        ("deploy", "--serve"),
        RUN,
        ("loop", "egfr", ".", "--type", "thermostability"),
        ("status",),
        ("status", "--problems"),
        ("spending", "--archive", "a"),
        ("spending", ".", "--account", "p"),
        ("results", "--archive", "a"),
        ("report", "round-1", "--archive", "a"),
        ("archive", "verify", "--archive", "a"),
        ("archive", "verify"),
        ("designs", "history", "--archive", "a"),
        ("drift", "--account", "c"),
    ],
    ids=" ".join,
)
def test_commands_refuse_to_work_without_a_configured_api(tmp_path, arguments):
    (tmp_path / "designs.fasta").write_text(DESIGNS)
    done = command(*arguments, cwd=tmp_path, PREFECT_HOME=str(tmp_path / "prefect"))
    assert done.code == 1, done.err
    assert "no Prefect API is configured" in done.err
    assert "`prefect-assay up`" in done.err
    assert "prefect config set PREFECT_API_URL=" in done.err
    assert not (tmp_path / "prefect" / "prefect.db").exists()


@pytest.mark.parametrize("option", ["--check", "--json"])
def test_serving_takes_no_option_that_it_would_ignore(tmp_path, option):
    done = command("deploy", "--serve", option, cwd=tmp_path, PREFECT_HOME=str(tmp_path / "prefect"))
    assert done.code == 2
    assert "leave out --check and --json" in done.err


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("deploy", "--sweep-seconds", "60"), "--sweep-seconds"),
        (("status", "round-1", "--problems"), "CAMPAIGN, LOOP OR RUN"),
        (("status", "--problems", "--watch", "--all"), "--watch, --all"),
        (("status", "--watch", "--json"), "--watch"),
        (
            ("loop", "egfr", "d", "--target", "t", "--seed", "0"),
            "--seed",
        ),
        (("loop", "egfr", "d", "--target", "t", "--timezone", "UTC"), "--timezone"),
        (("lab", "--receiver", "http://127.0.0.1:8100/assay"), "--receiver"),
        (("up", "--port", "4300"), "--port"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_no_command_takes_an_option_that_it_would_ignore(tmp_path, arguments, option):
    (tmp_path / "designs.fasta").write_text(DESIGNS)
    env = {"PREFECT_HOME": str(tmp_path / "prefect"), "PREFECT_API_URL": "http://127.0.0.1:9/api"}
    done = command(*arguments, cwd=tmp_path, **env)
    assert (done.code, f"{option} would be ignored" in done.err + done.out) == (2, True), done.err


@pytest.mark.parametrize("home", ["file", "file/home"])
def test_here_reports_a_prefect_home_that_cannot_be_written(tmp_path, home):
    """A file in the way stops root as well."""
    (tmp_path / "designs.fasta").write_text(DESIGNS)
    (tmp_path / "file").touch()
    done = command(*RUN, "--here", cwd=tmp_path, PREFECT_HOME=str(tmp_path / home))
    assert done.code == 1, done.err
    assert f"Error: the Prefect home {tmp_path / home} cannot be written" in done.err
    assert "set PREFECT_HOME" in done.err
    assert "Traceback" not in done.err


BROKEN = """
import subprocess, sys
from prefect.server.api.server import SubprocessASGIServer
from prefect_assay.cli import main

program = "import sys; sys.exit(7)"
SubprocessASGIServer._run_uvicorn_command = lambda _: subprocess.Popen([sys.executable, "-c", program])
sys.argv = ["prefect-assay", *sys.argv[1:]]
main()
"""


def test_here_reports_a_temporary_server_that_does_not_start(tmp_path):
    (tmp_path / "designs.fasta").write_text(DESIGNS)
    env = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    env |= {
        "PREFECT_HOME": str(tmp_path / "prefect"),
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", BROKEN, *RUN, "--here"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "Error: Prefect's temporary server does not start: " in done.stderr
    assert "exited with code 7. Start everything with `prefect-assay up`" in done.stderr
    assert "Traceback" not in done.stderr


def test_here_needs_an_api_where_temporary_servers_are_disabled(tmp_path):
    (tmp_path / "designs.fasta").write_text(DESIGNS)
    never = {"PREFECT_SERVER_EPHEMERAL_ENABLED": "false", "PREFECT_HOME": str(tmp_path / "prefect")}
    done = command(*RUN, "--here", cwd=tmp_path, **never)
    assert done.code == 1, done.err
    assert "no Prefect API is configured" in done.err
    assert "Traceback" not in done.err
