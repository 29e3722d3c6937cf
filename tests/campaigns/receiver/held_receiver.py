"""The receiver as a process, for tests that end it by a signal: `held_receiver.py <port> <folder>`.

Its wake-up reports what it does in the folder: `begun` when it begins, then it waits for as long as there is `hold`,
then the experiment's id is added to `woken`. Everything else is what `prefect-assay receiver` runs.
"""

import asyncio
import contextlib
import sys
from pathlib import Path

from prefect_assay.campaigns.receiver.receiver import Receiver
from prefect_assay.campaigns.receiver.settings import ReceiverSettings
from prefect_assay.cli.services.receiver import serve_receiver

port, folder = int(sys.argv[1]), Path(sys.argv[2])


async def wake(experiment_id: str, *_: object) -> int:
    (folder / "begun").touch()
    while (folder / "hold").exists():  # noqa: ASYNC110 - another process decides
        await asyncio.sleep(0.01)
    with (folder / "woken").open("a") as woken:
        woken.write(f"{experiment_id}\n")
    return 1


settings = ReceiverSettings.from_environment()
with contextlib.suppress(KeyboardInterrupt):  # as the command does
    serve_receiver(Receiver(settings, wake=wake), settings, "127.0.0.1", port)
