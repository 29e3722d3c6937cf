"""Remembers the updates handled lately, so that a doubled delivery costs no second search for runs.

Bounded in number and time, lost with the process, and nothing is wrong when it forgets: a repeated wake-up costs one
look.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

KEPT: Final = 10_000
SECONDS: Final = 300.0


class Recent:
    """A bounded set whose members expire."""

    def __init__(self, kept: int = KEPT, seconds: float = SECONDS) -> None:
        self._kept = kept
        self._seconds = seconds
        self._since: OrderedDict[Hashable, float] = OrderedDict()

    def add(self, key: Hashable, now: float) -> None:
        """Remember a key from `now` on, in seconds of a clock that only runs forward."""
        self._since[key] = now
        self._since.move_to_end(key)
        while len(self._since) > self._kept:
            self._since.popitem(last=False)

    def has(self, key: Hashable, now: float) -> bool:
        """Whether the key was added within the last seconds."""
        since = self._since.get(key)
        return since is not None and now - since < self._seconds
