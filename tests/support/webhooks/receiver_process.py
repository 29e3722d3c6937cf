"""The receiver as a process of its own, behind a real socket: `tests/campaigns/receiver/held_receiver.py`."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import httpx

from prefect_assay.local.environment import free_ports
from prefect_assay.local.leash import leash
from support.webhooks.deliveries import SIGNING_KEY

PROGRAM = Path(__file__).parents[2] / "campaigns" / "receiver" / "held_receiver.py"


class Process:
    """A receiver process on a port of its own, started as often as wished."""

    def __init__(self, folder, **env):
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}/assay"
        self.folder = folder
        self.env = os.environ | {"PREFECT_ASSAY_RECEIVER_SIGNING_KEYS": SIGNING_KEY} | env
        self.process = None
        self._log = (folder / "log").open("ab")

    def read_output(self):
        return (self.folder / "log").read_text(encoding="utf-8")

    def start(self):
        self.process = subprocess.Popen(
            [sys.executable, PROGRAM, str(self.port), str(self.folder)],
            env=self.env,
            stderr=self._log,
        )
        leash.hold(self.process.pid)
        self.until(self._answers, seconds=60)  # it imports Prefect

    def until(self, true, seconds=30):
        end = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < end, "it never came true"
            assert self.process.poll() is None, "the receiver has ended"
            time.sleep(0.02)

    def _answers(self):
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"{self.url}/health", trust_env=False).is_success
        return False

    def begun(self):
        return (self.folder / "begun").exists()

    def woken(self):
        file = self.folder / "woken"
        return file.read_text().split() if file.exists() else []

    def hold(self):
        (self.folder / "hold").touch()

    def release(self):
        (self.folder / "hold").unlink()

    def end(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
            leash.release(self.process.pid)
        self._log.close()
