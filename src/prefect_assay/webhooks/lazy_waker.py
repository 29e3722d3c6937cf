"""The receiver's side towards Prefect, loaded when it is first needed: importing Prefect takes seconds."""

import asyncio
import contextvars
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prefect_assay.runs.wake import Waker


class PrefectSide:
    """Wakes the runs of the configured Prefect API, and asks whether it is there."""

    def __init__(self) -> None:
        """Nothing is imported or connected."""
        self._waker: Waker | None = None
        self._loading = threading.Lock()

    async def wake(self, experiment_id: str, order_key: str | None) -> int:
        """Resume the runs of an order, or of any, that wait for an experiment; returns their number."""
        waker = await self.loaded()
        return await waker(experiment_id, order_key)

    async def ready(self) -> None:
        """Return when Prefect answers; raise when it does not."""
        waker = await self.loaded()
        await waker.ready()

    def warm(self) -> None:
        """Begin what the first delivery would have to wait for: imports, and the set-up of the clients."""
        # A daemon: a process that is asked to end while it starts does not wait for the import.
        work = contextvars.copy_context().run
        threading.Thread(target=work, args=(self._warm,), name="assay-warm", daemon=True).start()

    async def loaded(self) -> "Waker":
        """With Prefect imported."""
        waker = self._waker
        return await asyncio.to_thread(self._load) if waker is None else waker

    def close(self) -> None:
        """End the threads when what they do is done; whoever wakes after that begins anew."""
        waker, self._waker = self._waker, None  # without the lock, which an import may hold for seconds
        if waker is not None:
            waker.close()

    def _warm(self) -> None:
        self._load().connect()

    def _load(self) -> "Waker":
        with self._loading:
            if self._waker is None:
                from prefect_assay.runs.wake import Waker  # noqa: PLC0415 - imports Prefect

                self._waker = Waker()
            return self._waker
