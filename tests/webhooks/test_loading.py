"""The threads of a receiver import Prefect one after the other."""

import os
import subprocess
import sys

PROGRAM = """
import asyncio
from prefect_assay.webhooks import receiver
from prefect_assay.webhooks.settings import ReceiverSettings

async def main():
    built = receiver.Receiver(ReceiverSettings(signing_keys=["k" * 32]))
    async with built.app.router.lifespan_context(built.app):
        await built._waker._loaded()
        print("loaded", flush=True)

asyncio.run(main())
"""


def test_no_thread_finds_prefect_half_imported(tmp_path):
    environment = {
        **os.environ,
        "PREFECT_HOME": str(tmp_path),
        "PREFECT_API_URL": "http://127.0.0.1:9/api",
        "PREFECT_CLIENT_MAX_RETRIES": "0",
    }
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        check=False,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.stdout.strip() == "loaded", ended.stderr
    assert "deadlock" not in ended.stderr
    assert "initialize plugins" not in ended.stderr
