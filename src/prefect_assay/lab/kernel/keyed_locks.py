"""Takes turns per key, so that different keys go on side by side, and can hold up all keys at once."""

import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """One thread per key at a time. A thread that has a turn may take another one."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._locks: dict[str, threading.RLock] = defaultdict(threading.RLock)
        self._inside: Counter[int] = Counter()
        self._held = False

    @contextmanager
    def turn(self, key: str) -> Iterator[None]:
        """The key's turn."""
        me = threading.get_ident()
        with self._changed:
            self._changed.wait_for(lambda: not self._held or self._inside[me] > 0)
            self._inside[me] += 1
            lock = self._locks[key]
        try:
            with lock:
                yield
        finally:
            with self._changed:
                self._inside[me] -= 1
                if self._inside[me] == 0:
                    del self._inside[me]
                self._changed.notify_all()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Nobody has a turn while it is open; waits for those who have one."""
        with self._changed:
            self._changed.wait_for(lambda: not self._held)
            self._held = True
            self._changed.wait_for(lambda: not self._inside)
        try:
            yield
        finally:
            with self._changed:
                self._held = False
                self._changed.notify_all()
