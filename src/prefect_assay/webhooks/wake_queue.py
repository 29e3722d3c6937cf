"""Wake-ups one at a time, with a bounded queue before them, and a bounded share of it for each order.

Whoever gives up while it waits leaves the queue, so that an outage leaves no backlog of wake-ups nobody asks for
any more. A wake-up that has begun is never cut short: the next one must not overlap it.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from prefect_assay.webhooks.answers import NotNow

T = TypeVar("T")


class Turns:
    """The queue. Bound to no event loop until two wait at once."""

    def __init__(self, most_waiting: int, most_of_one: int) -> None:
        """Refuse whoever would be one more than `most_waiting`, or than `most_of_one` of the same order."""
        self._most_waiting = most_waiting
        self._most_of_one = most_of_one
        self._waiting_of: Counter[str | None] = Counter()
        self._lock = asyncio.Lock()
        self._running: set[asyncio.Task[Any]] = set()  # the loop itself holds tasks only weakly
        self.waiting = 0

    async def take(
        self, work: Callable[[], Awaitable[T]], *, seconds: float, order_key: str | None = None
    ) -> T:
        """What the work returns, once it is its turn; waiting and working take `seconds` at most.

        Args:
            work: the wake-up.
            seconds: how long to wait and to work.
            order_key: the order that it is for; without one only the queue's own bound counts.

        Raises:
            NotNow: too many wait, the turn has not come in time, or the work takes too long (and goes on).
            Exception: whatever the work raises.
        """
        end = asyncio.get_running_loop().time() + seconds
        await self._turn(end, order_key)
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

    async def _turn(self, end: float, order_key: str | None) -> None:
        if order_key is not None and self._waiting_of[order_key] >= self._most_of_one:
            # Whoever has the secret of one order must not keep the wake-ups of all others out.
            raise NotNow("order_overload", "too many deliveries of this order wait; send again")
        if self.waiting >= self._most_waiting:
            raise NotNow("overload", "too many deliveries wait; send again")
        self.waiting += 1
        self._waiting_of[order_key] += 1
        try:
            async with asyncio.timeout_at(end):
                await self._lock.acquire()
        except TimeoutError:
            raise NotNow("no_turn", "other wake-ups take long; send again") from None
        finally:
            self.waiting -= 1
            self._waiting_of[order_key] -= 1
            if not self._waiting_of[order_key]:
                del self._waiting_of[order_key]

    async def _work(self, work: Callable[[], Awaitable[T]]) -> T:
        try:
            return await work()
        finally:
            self._lock.release()

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # seen: a request that gave up no longer asks for it
