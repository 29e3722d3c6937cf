"""Wakes runs one at a time. The queue is bounded, and so is the share of each order."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final, TypeVar

from starlette.exceptions import HTTPException

T = TypeVar("T")

_RETRY_AFTER_SECONDS: Final = "5"


class RetryLater(HTTPException):
    """A 503: the delivery may be genuine, and the service sends it again. `close` where the body has not come."""

    def __init__(self, reason: str, detail: str, *, close: bool = False) -> None:
        headers = {"Retry-After": _RETRY_AFTER_SECONDS} | ({"Connection": "close"} if close else {})
        super().__init__(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers=headers)
        self.reason = reason


class WakeQueue:
    """The queue. Bound to no event loop until two requests wait at once.

    A request that gives up while it waits leaves the queue. A wake-up that has begun is never cut short:
    the next one must not overlap it.
    """

    def __init__(self, waiting_max: int, waiting_per_order_max: int) -> None:
        self._waiting_max = waiting_max
        self._per_order_max = waiting_per_order_max
        self._waiting_of: Counter[str | None] = Counter()
        self._lock = asyncio.Lock()
        self._running: set[asyncio.Task[Any]] = set()  # the loop itself holds tasks only weakly
        self.waiting = 0

    async def run(
        self, work: Callable[[], Awaitable[T]], *, seconds: float, order_key: str | None = None
    ) -> T:
        """Run the work once all earlier work is done; `seconds` limits waiting and working together.

        Raises:
            RetryLater: too many wait, the turn does not come in time, or the work takes too long (and goes on).
            Exception: whatever the work raises.
        """
        end = asyncio.get_running_loop().time() + seconds
        await self._acquire(end, order_key)
        # Nothing is awaited between the lock and the task that releases it.
        task = asyncio.create_task(self._work(work))
        self._running.add(task)
        task.add_done_callback(self._forget)
        limit = asyncio.timeout_at(end)
        try:
            async with limit:
                return await asyncio.shield(task)
        except TimeoutError:
            if limit.expired():
                raise RetryLater("slow_wake", "the wake-up takes long; send again") from None
            raise

    async def _acquire(self, end: float, order_key: str | None) -> None:
        if order_key is not None and self._waiting_of[order_key] >= self._per_order_max:
            # The secret of one order must not suffice to block the wake-ups of all others.
            raise RetryLater("order_overload", "too many deliveries of this order wait; send again")
        if self.waiting >= self._waiting_max:
            raise RetryLater("overload", "too many deliveries wait; send again")
        self.waiting += 1
        self._waiting_of[order_key] += 1
        try:
            async with asyncio.timeout_at(end):
                await self._lock.acquire()
        except TimeoutError:
            raise RetryLater("no_turn", "other wake-ups take long; send again") from None
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
            task.exception()  # retrieved, since a request that gave up no longer does
