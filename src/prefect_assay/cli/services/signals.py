"""Ctrl-C, SIGTERM and a closed terminal as exceptions that do not get lost."""

import signal
from types import FrameType, TracebackType
from typing import Any, Final, Self

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AGAIN_SECONDS: Final = 0.2
_EXIT_BASE: Final = 128
_IMPORTING: Final = "importlib._bootstrap"


class Ending:
    """While it is entered, each of the signals raises in the main thread, again and again until it is seen.

    Once would not do: an exception of a signal handler is swallowed when it strikes a callback of the import
    system or of the garbage collector. During an import of the main thread it waits for the import's end: raised
    between two steps of the import system, it would leave a lock taken for which every other thread then waits for
    ever. `KeyboardInterrupt` stands for Ctrl-C, `SystemExit` for the others.
    """

    def __init__(self) -> None:
        self._number = 0
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in (*_SIGNALS, signal.SIGALRM):
            # Set in any case: a process that was started in the background inherits that it ignores Ctrl-C.
            self._before[number] = signal.signal(number, self._leave)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def seen(self) -> None:
        """Stop raising; further signals are ignored, because what is being ended must be ended whole."""
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _leave(self, number: int, frame: FrameType | None) -> None:
        if number != signal.SIGALRM:
            self._number = number
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS, _AGAIN_SECONDS)
        if _importing(frame):
            return  # the timer asks again
        if self._number == signal.SIGINT:
            raise KeyboardInterrupt
        if self._number:
            raise SystemExit(_EXIT_BASE + self._number)


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_globals.get("__name__") == _IMPORTING:
            return True
        frame = frame.f_back
    return False
