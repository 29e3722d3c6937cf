"""Logs what may come by the thousand: the first line of a kind at once, later ones counted into one line."""

import logging
import time
from collections.abc import Callable
from typing import Final

SECONDS: Final = 10.0


class ThrottledLog:
    """One line per kind and interval. Kinds are a few words of this package, never a sender's."""

    def __init__(
        self,
        logger: logging.Logger,
        seconds: float = SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` returns monotonic seconds."""
        self._logger = logger
        self._seconds = seconds
        self._clock = clock
        self._logged: dict[str, float] = {}
        self._suppressed: dict[str, int] = {}

    def report(self, kind: str, message: str, *arguments: object) -> None:
        """Log the line, or count it for the next line of its kind."""
        now = self._clock()
        last = self._logged.get(kind)
        if last is not None and now - last < self._seconds:
            self._suppressed[kind] = self._suppressed.get(kind, 0) + 1
            return
        self._logged[kind] = now
        suppressed = self._suppressed.pop(kind, 0)
        if suppressed:
            message += " (and %d more like it before)"
            arguments = (*arguments, suppressed)
        self._logger.warning(message, *arguments)
