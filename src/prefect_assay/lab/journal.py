"""What the lab was asked, for tests: never a token, a body or a header that could hold a secret."""

import threading
from collections import deque
from dataclasses import dataclass
from typing import Any, Final

_KEPT: Final = 20_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One request. `answered` is False when the lab closed the connection instead."""

    number: int
    method: str
    path: str
    query: str
    status: int | None
    request_id: str
    answered: bool
    fault: str | None
    idempotency_key: str | None


class Journal:
    """The last requests to the API, oldest first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: deque[Entry] = deque(maxlen=_KEPT)
        self._count = 0

    def add(self, **fields: Any) -> None:
        """Write one entry."""
        with self._lock:
            self._count += 1
            self._entries.append(Entry(self._count, **fields))

    def entries(self, after: int = 0) -> list[Entry]:
        """Entries with a higher number."""
        with self._lock:
            return [entry for entry in self._entries if entry.number > after]

    def clear(self) -> None:
        """Forget all; numbers go on."""
        with self._lock:
            self._entries.clear()
