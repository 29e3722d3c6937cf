"""A gate, and locks and threads by key. Knows nothing of the lab."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

logger = logging.getLogger("prefect_assay.lab")


class Gate:
    """Threads pass side by side while it is open; closing it waits for them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside: Counter[int] = Counter()
        self._closed = False

    @contextmanager
    def inside(self, *, wait: bool = True) -> Iterator[None]:
        """Pass the open gate; without `wait`, a closed gate raises BlockingIOError. A thread inside may pass again."""
        me = threading.get_ident()
        with self._changed:
            if self._closed and not wait:
                raise BlockingIOError("the gate is closed")
            self._changed.wait_for(lambda: not self._closed or self._inside[me] > 0)
            self._inside[me] += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside[me] -= 1
                if self._inside[me] == 0:
                    del self._inside[me]
                self._changed.notify_all()

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Close the gate, and wait until nothing is inside."""
        with self._changed:
            self._changed.wait_for(lambda: not self._closed)
            self._closed = True
            self._changed.wait_for(lambda: not self._inside)
        try:
            yield
        finally:
            with self._changed:
                self._closed = False
                self._changed.notify_all()


class KeyedLocks:
    """A re-entrant lock per key; `hold_all` waits until all are free and keeps them so."""

    def __init__(self) -> None:
        self._gate = Gate()
        self._locks: dict[str, threading.RLock] = {}

    @contextmanager
    def lock(self, key: str) -> Iterator[None]:
        """Hold the key's lock. A thread that holds one may take another, even while `hold_all` waits."""
        with self._gate.inside(), self._locks.setdefault(key, threading.RLock()):
            yield

    def hold_all(self) -> AbstractContextManager[None]:
        """Wait until no key is locked, and let no thread lock one meanwhile."""
        return self._gate.closed()


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
