import subprocess
import sys

import pytest

from support.command import command

HEAVY = (
    "prefect",
    "numpy",
    "scipy",
    "sklearn",
    "pyarrow",
    "httpx",
    "boto3",
    "botocore",
    "fastapi",
    "sqlalchemy",
    "uvicorn",
    "eth_account",
)
COMMANDS = (
    [],
    ["demo"],
    ["up"],
    ["init"],
    ["lab"],
    ["receiver"],
    ["check"],
    ["register"],
    ["deploy"],
    ["run"],
    ["estimate"],
    ["targets"],
    ["approve"],
    ["reject"],
    ["cancel"],
    ["loop"],
    ["status"],
    ["spending"],
    ["archive"],
    ["archive", "verify"],
    ["archive", "tables"],
    ["results"],
    ["designs"],
    ["designs", "check"],
    ["designs", "select"],
    ["designs", "history"],
    ["drift"],
    ["kinetics"],
)
_PROBE = """
import sys
from prefect_assay.cli.app import app
for arguments in COMMANDS:
    try:
        app([*arguments, "--help"])
    except SystemExit as done:
        assert done.code == 0, (arguments, done.code)
    loaded = sorted({name.partition(".")[0] for name in sys.modules} & set(HEAVY))
    assert not loaded, f"imported for the help of {arguments}: {loaded}"
"""


def test_no_help_imports_anything_heavy():
    probe = _PROBE.replace("COMMANDS", repr(COMMANDS)).replace("HEAVY", repr(HEAVY))
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Usage") == len(COMMANDS)


def test_no_secret_can_be_given_as_an_option():
    for name in ("run", "init", "up", "lab", "receiver", "deploy", "register", "status", "spending", "drift"):
        options = {
            word for word in command(name, "--help").out.replace(",", " ").split() if word.startswith("--")
        }
        assert {
            o for o in options if any(s in o for s in ("token", "secret", "private", "password", "api-key"))
        } <= {"--password"}  # a flag, which asks


def test_the_outcomes_are_those_of_results():
    from typing import get_args

    from prefect_assay.analysis.results import Outcome
    from prefect_assay.cli.archives.app import OutcomeWord

    assert set(get_args(OutcomeWord)) == set(Outcome)


@pytest.mark.parametrize("arguments", [["run"], ["archive", "verify", "--nope"], ["unknown"]])
def test_wrong_usage_is_exit_code_2_without_traceback(arguments):
    done = command(*arguments)
    assert done.code == 2
    assert "Traceback" not in done.err


def test_the_version_is_the_installed_one():
    from importlib.metadata import version

    assert command("--version").out == f"prefect-assay {version('prefect-assay')}\n"


def test_the_commands_are_grouped():
    lines = command("--help", COLUMNS="80").out.splitlines()
    panels = [line.split()[1] for line in lines if line.startswith("╭")]
    assert panels == ["Options", "Campaigns", "Results", "Designs", "Installation"]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("typed", "offered"), [("prefect-assay appr", "approve"), ("prefect-assay archive v", "verify")]
)
def test_bash_completes_commands_without_prefect(tmp_path, typed, offered):
    """The script that --show-completion prints, in a real bash."""
    (tmp_path / "prefect.py").write_text("raise ImportError('Prefect was imported')")
    (tmp_path / "prefect-assay").write_text(
        f"#!{sys.executable}\nfrom prefect_assay.cli import main\nmain()\n"
    )
    (tmp_path / "prefect-assay").chmod(0o755)
    script = f"""
        export PATH={tmp_path}:$PATH PYTHONPATH={tmp_path}
        source <(_PREFECT_ASSAY_COMPLETE=source_bash prefect-assay)
        COMP_WORDS=({typed}); COMP_CWORD={typed.count(" ")}
        _prefect_assay_completion prefect-assay
        echo "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout.strip(), done.stderr) == (offered, "")
