"""Runs the command line, and small programs, as a user does: in a process of its own, without the user's Prefect settings.

Most of what a command costs is importing Prefect, pyarrow and scipy. It is therefore forked from a process that has
imported them, once per test process; everything else a fresh interpreter would do, the fork does.
"""

import atexit
import contextlib
import functools
import json
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

from support.runs.forking import IMPORTED

# Read by an interpreter before its first line: only a fresh one heeds them.
_READ_AT_START = ("PYTHON", "LD_")


@dataclass(frozen=True)
class Finished:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


def command(*arguments: str, cwd: Path | None = None, seconds: float = 60, **env: str) -> Finished:
    """`prefect-assay ARGUMENTS` to its end; `env` adds to the environment, without the user's Prefect settings."""
    return _finished(
        ("-m", "prefect_assay.cli", *arguments), cwd or Path.cwd(), {"COLUMNS": "200", **env}, seconds
    )


def program(text: str, home: Path, profile: str = "", **env: str) -> Finished:
    """A Python program to its end, where `profile` holds the lines of the active Prefect profile."""
    (home / "profiles.toml").write_text(f'active = "mine"\n[profiles.mine]\n{profile}')
    return _finished(("-c", text), home, {"PREFECT_HOME": str(home), **env}, 60)


def printed(text: str, home: Path, profile: str = "", **env: str) -> str:
    """What a Python program prints that ends well, as in `program`."""
    done = program(text, home, profile, **env)
    assert done.code == 0, done.err
    return done.out


def _finished(arguments: Sequence[str], cwd: Path, env: Mapping[str, str], seconds: float) -> Finished:
    """`python ARGUMENTS` to its end."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    run = _fresh if any(name.startswith(_READ_AT_START) for name in env) else _forked
    return run(arguments, cwd, {**inherited, **env}, seconds)


def _fresh(arguments: Sequence[str], cwd: Path, env: Mapping[str, str], seconds: float) -> Finished:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def _forked(arguments: Sequence[str], cwd: Path, env: Mapping[str, str], seconds: float) -> Finished:
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        process = _fork_server().Process(target=_run, args=(arguments, cwd, dict(env), out, err))
        process.start()
        process.join(seconds)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(list(arguments), seconds, out.read_text(), err.read_text())
        return Finished(process.exitcode, out.read_text(), err.read_text())


@functools.cache
def _fork_server() -> ForkServerContext:
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["prefect_assay.cli.app", *IMPORTED])
    return server


def _run(arguments: Sequence[str], cwd: Path, env: Mapping[str, str], out: Path, err: Path) -> None:
    """In the fork: what `python ARGUMENTS` does there, from the reading of the environment on."""
    for stream, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    how, what, *further = arguments
    sys.argv = [how, *further]
    from prefect.context import refresh_global_settings_context

    refresh_global_settings_context()  # the server read them from its own environment
    try:
        if how == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
    finally:
        atexit._run_exitfuncs()  # multiprocessing ends a fork without them
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(ValueError):  # closed
                stream.flush()
