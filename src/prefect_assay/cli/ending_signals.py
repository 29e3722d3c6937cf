"""Handles the signals that end a command with child processes. None of them gets lost."""

import signal
from types import FrameType, TracebackType
from typing import Any, Final, Self

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_REPEAT_SECONDS: Final = 0.2
_EXIT_BASE: Final = 128
_IMPORTING: Final = "importlib._bootstrap"


class EndingSignals:
    """In its block each of the signals raises in the main thread, repeatedly until `seen` is called.

    Once is not enough: an exception of a signal handler is swallowed where it interrupts a callback of the import
    system or of the garbage collector. During an import of the main thread it is deferred to the import's end: raised
    inside the import system it could leave a lock taken, and every other thread would wait for it forever.
    Ctrl-C raises `KeyboardInterrupt`, the other signals `SystemExit`.
    """

    def __init__(self) -> None:
        self._number = 0
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in (*_SIGNALS, signal.SIGALRM):
            # Always set: a process that was started in the background inherits that it ignores Ctrl-C.
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def seen(self) -> None:
        """Stop raising, and ignore further signals, so that cleaning up is not interrupted."""
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if number != signal.SIGALRM:
            self._number = number
            signal.setitimer(signal.ITIMER_REAL, _REPEAT_SECONDS, _REPEAT_SECONDS)
        if _is_importing(frame):
            return  # the timer calls again
        if self._number == signal.SIGINT:
            raise KeyboardInterrupt
        if self._number:
            raise SystemExit(_EXIT_BASE + self._number)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_globals.get("__name__") == _IMPORTING:
            return True
        frame = frame.f_back
    return False
