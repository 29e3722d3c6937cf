"""Runs the command line, and small programs, as a user does: in a process of its own, without the user's Prefect settings."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Finished:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


def command(*arguments: str, cwd: Path | None = None, seconds: float = 60, **env: str) -> Finished:
    """`prefect-assay ARGUMENTS` to its end; `env` adds to the environment, without the user's Prefect settings."""
    done = subprocess.run(
        [sys.executable, "-m", "prefect_assay.cli", *arguments],
        cwd=cwd,
        env={**_inherited(), "COLUMNS": "200", **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def printed(program: str, home: Path, profile: str = "", **env: str) -> str:
    """What a Python program prints where `profile` holds the lines of the active Prefect profile."""
    (home / "profiles.toml").write_text(f'active = "mine"\n[profiles.mine]\n{profile}')
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=home,
        env={**_inherited(), "PREFECT_HOME": str(home), **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout


def _inherited() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
