"""Faults that tests have asked for, in the order in which they were: the base of the three kinds."""

import copy
import threading
from typing import Any, Generic, Protocol, TypeVar


class _Fault(Protocol):
    def view(self) -> dict[str, Any]: ...


Kind = TypeVar("Kind", bound=_Fault)


class FaultList(Generic[Kind]):
    """All faults of one kind, used up ones too. The list is replaced rather than changed: it is read without lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[Kind] = []

    def append(self, fault: Kind) -> None:
        """Append a fault."""
        with self._lock:
            self._faults = [*self._faults, fault]

    def view(self) -> list[dict[str, Any]]:
        """As the control surface shows them: what was asked for, and what came of it."""
        with self._lock:
            return [fault.view() for fault in self._faults]

    def save(self) -> list[Kind]:
        """A copy for a snapshot, with counts and the state of chance."""
        with self._lock:
            return copy.deepcopy(self._faults)

    def load(self, saved: list[Kind]) -> None:
        """Back to a copy."""
        with self._lock:
            self._faults = copy.deepcopy(saved)

    def clear(self) -> None:
        """Drop all."""
        with self._lock:
            self._faults = []
