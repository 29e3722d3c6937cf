"""Faults and a rate limit that tests set on API requests through the control surface (docs/lab.md).

The most important fault is `lose_answer`: the request is handled completely and its answer never arrives.
"""

import itertools
import math
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import ConfigDict, Field

from prefect_assay.lab.kernel.faults import FaultList
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


class Fault(Body):
    """What happens to requests that match `method` and `path` (with `*`, with or without `/api/v1`)."""

    model_config = ConfigDict(frozen=True)

    action: Action
    method: str = "*"
    path: str = "*"
    organization_id: str | None = None  # hits only requests with a token of this organisation
    # How many requests it hits; default 1, or any number with `probability`
    count: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    after: Annotated[int, Field(ge=0, le=1_000_000)] = 0  # how many matching requests pass first
    # Chance of each matching request to be hit, repeatable by `seed`
    probability: Annotated[float, Field(ge=0, le=1)] | None = None
    seed: int | str = 0
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

    @property
    def limit(self) -> int | None:
        """How many requests it hits at most, or None."""
        return 1 if self.count is None and self.probability is None else self.count

    def matches(self, method: str, path: str) -> bool:
        """Whether it applies to this call."""
        return self.method in ("*", method) and path_matches(path, self.path)


def path_matches(path: str, pattern: str) -> bool:
    """Whether a pattern with `*` matches a path, with or without `/api/v1` in front."""
    return any(fnmatchcase(text, pattern) for text in (path, path.removeprefix(API_PREFIX)))


class QueuedFault:
    """A fault in the queue, with its counts."""

    def __init__(self, number: int, fault: Fault) -> None:
        self.number = number
        self.fault = fault
        self.matched = 0
        self.used = 0
        self._draw = random.Random(fault.seed)  # noqa: S311 - which requests fail, no secret

    @property
    def organization_id(self) -> str | None:
        """Whose requests it hits, None for all."""
        return self.fault.organization_id

    @property
    def spent(self) -> bool:
        """Whether it has hit its limit."""
        return self.fault.limit is not None and self.used >= self.fault.limit

    def strikes(self) -> bool:
        """Count one matching request; whether it is hit."""
        self.matched += 1
        if self.matched <= self.fault.after:
            return False
        chance = self.fault.probability
        if chance is not None and self._draw.random() >= chance:
            return False
        self.used += 1
        return True

    def view(self) -> dict[str, Any]:
        """As the control surface shows it: the fields that were set, and the counts."""
        return {
            "id": self.number,
            **self.fault.model_dump(exclude_unset=True),
            "matched": self.matched,
            "used": self.used,
            "waiting": not self.spent,
        }


class FaultQueue(FaultList[QueuedFault]):
    """The queue of faults; the first that strikes decides."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = itertools.count(1)

    def add(self, fault: Fault) -> QueuedFault:
        """Queue a fault under a number that is never used again, also after a clear or a restore."""
        queued = QueuedFault(next(self._numbers), fault)
        self.append(queued)
        return queued

    @property
    def idle(self) -> bool:
        """Whether nothing is queued."""
        return not self._faults

    def depends_on_organization(self, method: str, path: str) -> bool:
        """Whether the faults for this call depend on its organisation."""
        return any(
            queued.organization_id is not None and queued.fault.matches(method, path)
            for queued in self._faults
        )

    def take(self, method: str, path: str, organization_id: str | None = None) -> QueuedFault | None:
        """The fault that strikes this request, if any."""
        with self._lock:
            for queued in self._faults:
                meant = queued.organization_id in (None, organization_id) and queued.fault.matches(
                    method, path
                )
                if meant and not queued.spent and queued.strikes():
                    return queued
        return None

    def give_back(self, queued: QueuedFault) -> None:
        """Undo a strike on a request that it cannot harm, such as an order without an invoice."""
        with self._lock:
            queued.used -= 1

    def remove(self, number: int) -> bool:
        """Drop one; False for an unknown number."""
        with self._lock:
            before = len(self._faults)
            self._faults = [queued for queued in self._faults if queued.number != number]
            return len(self._faults) < before


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
