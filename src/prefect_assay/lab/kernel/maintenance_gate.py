"""Lets requests run side by side, and holds them off while the whole lab is exchanged (reset and restore)."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Gate:
    """Many may be inside at once, or one that has closed it."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._inside = 0
        self._closed = False

    @contextmanager
    def inside(self, *, wait: bool = True) -> Iterator[None]:
        """Enter as one of many when the gate is open; without `wait`, a closed gate raises BlockingIOError."""
        with self._news:
            while self._closed:
                if not wait:
                    raise BlockingIOError("the gate is closed")
                self._news.wait()
            self._inside += 1
        try:
            yield
        finally:
            with self._news:
                self._inside -= 1
                if not self._inside:
                    self._news.notify_all()

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Wait until nobody is inside, and keep everybody out meanwhile."""
        with self._news:
            while self._closed:
                self._news.wait()
            self._closed = True
            while self._inside:
                self._news.wait()
        try:
            yield
        finally:
            with self._news:
                self._closed = False
                self._news.notify_all()
