"""`prefect-assay server` as a process on SQLite, which starts in seconds."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from prefect_assay.local.environment import free_ports

START_SECONDS = 90


@contextmanager
def prefect_server(home: Path, *options: str, **env: str) -> Iterator[str]:
    """Start and end one; its address. What it prints is in `server.log` of its home."""
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    database = f"sqlite+aiosqlite:///{home}/prefect.db"
    settings = {"PREFECT_HOME": str(home), "PREFECT_SERVER_DATABASE_CONNECTION_URL": database}
    log = home / "server.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "prefect_assay.cli", "server", "--port", str(port), *options],
            env={**inherited, **settings, **env},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        end = time.monotonic() + START_SECONDS
        while not _answers(url):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(30)


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/api/health", timeout=5).is_success
    except httpx.TransportError:
        return False
