"""Faults that a test asks for through the control surface: for API routes and for webhooks.

The one that matters most is `lose_answer`: the request is handled fully and its answer never arrives.
"""

import threading
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, get_args

from prefect_assay.lab.refusals import Refusal
from prefect_assay.lab.settings import API_PREFIX

Action = Literal["status", "delay", "late_answer", "reset", "lose_answer", "partial_create"]
ACTIONS: Final = get_args(Action)
WEBHOOK_ACTIONS: Final = ("drop", "double", "bad_signature")


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to matching requests.

    Attributes:
        action: `status` answers with `status` and handles nothing; `delay` waits `seconds` before handling;
            `reset` closes the connection and handles nothing; `lose_answer` handles the request and then closes
            the connection; `late_answer` handles it and answers after `seconds`; `partial_create` breaks an order
            after its invoice was made (contract 4.2, create rule 6).
        method: HTTP method, or `*`.
        path: pattern with `*`, with or without `/api/v1` in front.
        count: how many requests it still hits.
        after: how many matching requests it lets pass first.
        status: the status of `status`.
        seconds: the wait of `delay` and `late_answer`.
        retry_after: Retry-After header of `status`.
    """

    action: Action
    method: str = "*"
    path: str = "*"
    count: int = 1
    after: int = 0
    status: int = 503
    seconds: float = 0.0
    retry_after: float | None = None

    def matches(self, method: str, path: str) -> bool:
        """Whether the request is hit."""
        named = fnmatchcase(path, self.path) or fnmatchcase(path.removeprefix(API_PREFIX), self.path)
        return self.method in ("*", method) and named


class Faults:
    """The queue of faults; the first that matches is used up by one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[Fault] = []

    def add(self, fault: Fault) -> None:
        """Queue a fault.

        Raises:
            Refusal: 400 for an unknown action.
        """
        if fault.action not in ACTIONS:
            raise Refusal(400, f"unknown fault {fault.action!r}; known are {', '.join(ACTIONS)}")
        with self._lock:
            self._faults.append(fault)

    def take(self, method: str, path: str) -> Fault | None:
        """The fault for this request, if any."""
        with self._lock:
            for index, fault in enumerate(self._faults):
                if not fault.matches(method, path):
                    continue
                if fault.after > 0:
                    self._faults[index] = replace(fault, after=fault.after - 1)
                else:
                    left = replace(fault, count=fault.count - 1)
                    self._faults[index : index + 1] = [left] if left.count > 0 else []
                    return fault
        return None

    def waiting(self) -> list[Fault]:
        """Faults not used up yet."""
        with self._lock:
            return list(self._faults)

    def clear(self) -> None:
        """Drop all."""
        with self._lock:
            self._faults.clear()


class WebhookFaults:
    """Faults of the next deliveries, in order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue: list[str] = []

    def add(self, action: Any, count: int) -> None:
        """Queue `drop`, `double` or `bad_signature` for the next `count` deliveries.

        Raises:
            Refusal: 400 for an unknown action.
        """
        if action not in WEBHOOK_ACTIONS:
            raise Refusal(400, f"unknown webhook fault {action!r}; known are {', '.join(WEBHOOK_ACTIONS)}")
        with self._lock:
            self._queue.extend([action] * count)

    def take(self) -> str | None:
        """The fault of the next delivery, if any."""
        with self._lock:
            return self._queue.pop(0) if self._queue else None

    def clear(self) -> None:
        """Drop all."""
        with self._lock:
            self._queue.clear()
