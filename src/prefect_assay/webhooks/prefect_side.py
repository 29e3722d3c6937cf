"""The receiver's side towards Prefect, loaded when it is first needed: importing Prefect takes seconds."""

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prefect_assay.waiting.wake import Waker


class PrefectSide:
    """Wakes the runs of the configured Prefect API, and asks whether it is there."""

    def __init__(self) -> None:
        """Nothing is imported or connected."""
        self._waker: Waker | None = None
        self._loading = threading.Lock()

    async def wake(self, experiment_id: str) -> int:
        """Resume the runs that wait for an experiment; returns their number."""
        waker = await self.loaded()
        return await waker(experiment_id)

    async def ready(self) -> None:
        """Return when Prefect answers; raise when it does not."""
        waker = await self.loaded()
        await waker.ready()

    async def warm(self) -> None:
        """Do now what the first delivery would have to wait for: imports, and the set-up of the clients."""
        waker = await self.loaded()
        with contextlib.suppress(Exception):  # what is wrong will be told to whoever asks for it
            await waker.connect()

    async def loaded(self) -> "Waker":
        """With Prefect imported."""
        return self._waker or await asyncio.to_thread(self._load)

    def close(self) -> None:
        """End the threads when what they do is done."""
        if self._waker is not None:
            self._waker.close()

    def _load(self) -> "Waker":
        with self._loading:
            if self._waker is None:
                from prefect_assay.waiting.wake import Waker  # noqa: PLC0415 - imports Prefect

                self._waker = Waker()
            return self._waker
