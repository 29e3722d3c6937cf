"""Faults and a rate limit that tests set on API requests through the control surface (docs/lab.md).

The most important fault is `lose_answer`: the request is handled completely and its answer never arrives.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import ConfigDict, Field

from prefect_assay.lab.kernel.faults import CountedFault
from prefect_assay.lab.kernel.refusals import Body
from prefect_assay.lab.kernel.settings import API_PREFIX

Action = Literal[
    "status",
    "delay",
    "reset",
    "lose_answer",
    "late_answer",
    "truncate",
    "error_after",
    "partial_create",
    "post_invoice_failure",
]
ACTIONS: Final = get_args(Action)
NEVER_HANDLED: Final = frozenset({"status", "reset"})
NEVER_ANSWERED: Final = frozenset({"reset", "lose_answer"})
BREAKS_ORDER: Final = frozenset({"partial_create", "post_invoice_failure"})

Seconds = Annotated[float, Field(ge=0, le=600)]


class Fault(CountedFault):
    """What happens to requests that match `method` and `path` (with `*`, with or without `/api/v1`)."""

    action: Action
    method: str = "*"
    path: str = "*"
    # Of `status`, `error_after` and `post_invoice_failure`; default 503 or 500
    status: Annotated[int, Field(ge=200, le=599)] | None = None
    seconds: Seconds = 0.0  # the wait of `delay` and `late_answer`
    # Retry-After header of an error answer, in seconds
    retry_after: Annotated[float, Field(ge=0, le=86_400)] | None = None
    error: str = "fault asked for by the test"
    # Further fields of an error body, such as `error_kind`
    fields: Annotated[dict[str, Any], Field(default_factory=dict)]
    # How much of the body `truncate` sends; default half
    keep_bytes: Annotated[int, Field(ge=0)] | None = None

    def meets(self, **names: Any) -> bool:
        """Whether it is meant for a request."""
        method, path = names.pop("method"), names.pop("path")
        return self.method in ("*", method) and path_matches(path, self.path) and super().meets(**names)


def path_matches(path: str, pattern: str) -> bool:
    """Whether a pattern with `*` matches a path, with or without `/api/v1` in front."""
    return any(fnmatchcase(text, pattern) for text in (path, path.removeprefix(API_PREFIX)))


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
