"""Runs the command line as a user does: a process of its own."""

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
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    done = subprocess.run(
        [sys.executable, "-m", "prefect_assay.cli", *arguments],
        cwd=cwd,
        env={**inherited, "COLUMNS": "200", **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)
