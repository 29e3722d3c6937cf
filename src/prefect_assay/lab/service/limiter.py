"""A rate limit, off until a test sets one. It counts real time, as `Retry-After` does."""

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from prefect_assay.lab.kernel.refusals import Body


class RateLimit(Body):
    """So many requests per token within a sliding window of real seconds; of one organisation's tokens, or of all."""

    model_config = ConfigDict(frozen=True)

    requests: Annotated[int, Field(ge=1, le=1_000_000)]
    per_seconds: Annotated[float, Field(gt=0, le=86_400)]
    organization_id: str | None = None


class Limiter:
    """Counts requests in a sliding window per token. A refused request does not count."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._limit: RateLimit | None = None
        self._passed: dict[str, deque[float]] = {}
        self._refused = 0

    @property
    def limit(self) -> RateLimit | None:
        """The limit in force."""
        return self._limit

    def set(self, limit: RateLimit | None) -> None:
        """Replace the limit, and forget what was counted."""
        with self._lock:
            self._limit, self._refused = limit, 0
            self._passed.clear()

    def refuse(self, token: str) -> int | None:
        """Count a request: None when it may pass, else whole seconds until one may."""
        with self._lock:
            if self._limit is None:
                return None
            passed, now = self._passed.setdefault(token, deque()), self._now()
            while passed and now - passed[0] >= self._limit.per_seconds:
                passed.popleft()
            if len(passed) < self._limit.requests:
                passed.append(now)
                return None
            self._refused += 1
            return max(1, math.ceil(self._limit.per_seconds - (now - passed[0])))

    def view(self) -> dict[str, Any]:
        """The limit, and how many requests it has refused."""
        with self._lock:
            limit = self._limit.model_dump() if self._limit else None
            return {"limit": limit, "refused": self._refused}
