"""Locks and threads by key. Knows nothing of the lab."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

logger = logging.getLogger("assay_lab")


class KeyedLocks:
    """A re-entrant lock per key."""

    def __init__(self) -> None:
        self._locks: dict[str, threading.RLock] = {}

    def lock(self, key: str) -> AbstractContextManager[bool]:
        """The key's lock, as a context manager."""
        return self._locks.setdefault(key, threading.RLock())


class KeyedWorkers:
    """At most one thread per key, so that slow work for one delays no other; calls meanwhile make it run once more."""

    def __init__(self, name: str, work: Callable[[str], None]) -> None:
        self._name = name
        self._work = work
        self._lock = threading.Lock()
        self._again: dict[str, bool] = {}
        self._threads: dict[str, threading.Thread] = {}

    def call(self, key: str) -> None:
        """Work for this key now, or once more after the running work."""
        with self._lock:
            if key in self._threads:
                self._again[key] = True
                return
            thread = threading.Thread(target=self._run, args=(key,), name=self._name, daemon=True)
            thread.start()  # with the lock, so that `join` meets no thread that has not begun
            self._threads[key] = thread

    def join(self, seconds: float) -> None:
        """Wait for the running threads, at most `seconds` in all."""
        end = time.monotonic() + seconds
        with self._lock:
            running = list(self._threads.values())
        for thread in running:
            thread.join(max(0.0, end - time.monotonic()))

    def _run(self, key: str) -> None:
        while True:
            try:
                self._work(key)
            except Exception:
                logger.exception("%s failed; it runs again at the next change", self._name)
            with self._lock:
                if not self._again.pop(key, False):
                    del self._threads[key]
                    return
