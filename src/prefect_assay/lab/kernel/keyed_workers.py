"""Threads that work for one key each, so that what is slow for one organisation holds up no other.

A call for a key whose thread is at work makes it go round once more: nothing that changed meanwhile is missed.
"""

import logging
import threading
import time
from collections.abc import Callable

logger = logging.getLogger("prefect_assay.lab")


class Crew:
    """At most one thread per key."""

    def __init__(self, name: str, work: Callable[[str], None]) -> None:
        self._name = name
        self._work = work
        self._lock = threading.Lock()
        self._again: dict[str, bool] = {}
        self._threads: dict[str, threading.Thread] = {}

    def call(self, key: str) -> None:
        """Work for this key: now, or once more after what is running."""
        with self._lock:
            if key in self._threads:
                self._again[key] = True
                return
            thread = threading.Thread(target=self._run, args=(key,), name=self._name, daemon=True)
            thread.start()  # with the lock, so that `join` meets no thread that has not begun
            self._threads[key] = thread

    def join(self, seconds: float) -> None:
        """Wait for what is running."""
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
                logger.exception("%s failed; it goes on with the next change", self._name)
            with self._lock:
                if not self._again.pop(key, False):
                    del self._threads[key]
                    return
