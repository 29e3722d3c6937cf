"""Wake-ups one at a time, with a bounded queue before them.

Whoever gives up while it waits leaves the queue, so that an outage leaves no backlog of wake-ups nobody asks for
any more. A wake-up that has begun is never cut short: the next one must not overlap it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from prefect_assay.webhooks.answers import NotNow

T = TypeVar("T")


class Turns:
    """The queue. Bound to no event loop until two wait at once."""

    def __init__(self, most_waiting: int) -> None:
        """Refuse whoever would be one more than `most_waiting`."""
        self._most_waiting = most_waiting
        self._lock = asyncio.Lock()
        self._running: set[asyncio.Task[Any]] = set()  # the loop itself holds tasks only weakly
        self.waiting = 0

    async def take(self, work: Callable[[], Awaitable[T]], *, seconds: float) -> T:
        """What the work returns, once it is its turn; waiting and working take `seconds` at most.

        Raises:
            NotNow: too many wait, the turn has not come in time, or the work takes too long (and goes on).
            Exception: whatever the work raises.
        """
        end = asyncio.get_running_loop().time() + seconds
        await self._turn(end)
        # Nothing is awaited between the turn and the task that gives it back.
        task = asyncio.create_task(self._work(work))
        self._running.add(task)
        task.add_done_callback(self._forget)
        limit = asyncio.timeout_at(end)
        try:
            async with limit:
                return await asyncio.shield(task)
        except TimeoutError:
            if limit.expired():
                raise NotNow("slow_wake", "the wake-up takes long; send again") from None
            raise

    async def _turn(self, end: float) -> None:
        if self.waiting >= self._most_waiting:
            raise NotNow("overload", "too many deliveries wait; send again")
        self.waiting += 1
        try:
            async with asyncio.timeout_at(end):
                await self._lock.acquire()
        except TimeoutError:
            raise NotNow("no_turn", "other wake-ups take long; send again") from None
        finally:
            self.waiting -= 1

    async def _work(self, work: Callable[[], Awaitable[T]]) -> T:
        try:
            return await work()
        finally:
            self._lock.release()

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # seen: a request that gave up no longer asks for it
