"""The journal of API requests, for tests: no tokens, no bodies, no headers that could hold a secret."""

import threading
from collections import deque
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from assay_lab.service.faults import path_matches

_KEPT: Final = 20_000


@dataclass(slots=True)
class Caller:
    """Whose request it is, filled in when its token is checked; and what a fault does to the order that it makes."""

    organization_id: str | None = None
    token_id: str | None = None
    breaks_order: bool = False
    broken: dict[str, Any] | None = None  # the further fields of the error body, if an order was broken


# The edge sets an empty one for each request; it reaches the core's thread with the request's context.
CALLER: ContextVar[Caller | None] = ContextVar("caller", default=None)


def name_caller(organization_id: str, token_id: str) -> None:
    """Note whose token the current request carries."""
    caller = CALLER.get()
    if caller is not None:
        caller.organization_id, caller.token_id = organization_id or None, token_id or None


class Journal:
    """The last requests to the API, oldest first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: deque[dict[str, Any]] = deque(maxlen=_KEPT)
        self._count = 0

    def add(self, **fields: Any) -> None:
        """Append an entry (`commands.JournalEntry`), under a number that survives resets."""
        with self._lock:
            self._count += 1
            self._entries.append({"number": self._count, **fields})

    @property
    def position(self) -> int:
        """The number of the latest entry."""
        return self._count

    def entries(
        self, after: int = 0, *, method: str = "*", path: str = "*", organization_id: str | None = None
    ) -> list[dict[str, Any]]:
        """Entries with a higher number. `path` may hold `*` and leave out `/api/v1`."""

        def matches_filters(entry: dict[str, Any]) -> bool:
            named = method in ("*", entry["method"]) and path_matches(entry["path"], path)
            return entry["number"] > after and named and organization_id in (None, entry["organization_id"])

        with self._lock:
            return [entry for entry in self._entries if matches_filters(entry)]

    def clear(self) -> None:
        """Forget all; numbers go on."""
        with self._lock:
            self._entries.clear()
