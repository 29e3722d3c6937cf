"""Logs what may come by the thousand: the first of a kind at once, then one line in a while that counts the rest."""

import logging
import time
from collections.abc import Callable
from typing import Final

SECONDS: Final = 10.0


class SparingLog:
    """One line per kind and interval. Kinds are few words of this package, never a sender's."""

    def __init__(
        self,
        logger: logging.Logger,
        seconds: float = SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` gives seconds that only run forward."""
        self._logger = logger
        self._seconds = seconds
        self._clock = clock
        self._since: dict[str, float] = {}
        self._more: dict[str, int] = {}

    def say(self, kind: str, message: str, *arguments: object) -> None:
        """Log it, or count it for the next line of its kind."""
        now = self._clock()
        since = self._since.get(kind)
        if since is not None and now - since < self._seconds:
            self._more[kind] = self._more.get(kind, 0) + 1
            return
        self._since[kind] = now
        more = self._more.pop(kind, 0)
        if more:
            message += " (and %d more like it before)"
            arguments = (*arguments, more)
        self._logger.warning(message, *arguments)
