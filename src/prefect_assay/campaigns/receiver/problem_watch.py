"""Reads the open problems for the receiver's metrics, and notices a silent sweep.

Prefect is asked once a minute by a thread of its own; nothing here delays a delivery.
"""

import contextvars
import logging
import threading
from datetime import UTC, datetime
from typing import Final

from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL

from prefect_assay.campaigns.problems.find import sweep_silence
from prefect_assay.campaigns.problems.problem import Problem, SavedState
from prefect_assay.campaigns.problems.saved import read_saved, report_opened, report_resolved

_EVERY_SECONDS: Final = 60.0
_log = logging.getLogger("prefect_assay.campaigns.receiver.receiver")


class ProblemWatch:
    """The saved problems as of the last minute. Begins with `start`."""

    def __init__(self, every_seconds: float = _EVERY_SECONDS) -> None:
        self._every = every_seconds
        self._ended = threading.Event()
        self._began = datetime.now(UTC)
        self._state: SavedState | None = None
        self._silence: Problem | None = None

    @property
    def state(self) -> SavedState | None:
        """The problems, with the sweep's silence; None if they could not be read."""
        state, silence = self._state, self._silence
        if state is None or silence is None:
            return state
        return state.model_copy(update={"problems": (silence, *state.problems)})

    def start(self) -> None:
        """Begin to watch, in a daemon thread with this thread's Prefect settings."""
        work = contextvars.copy_context().run
        threading.Thread(target=work, args=(self._watch,), name="assay-problems", daemon=True).start()

    def close(self) -> None:
        """End the thread, without waiting for it."""
        self._ended.set()

    def _watch(self) -> None:
        while not self._ended.is_set():
            try:
                self.look(datetime.now(UTC))
            except Exception as error:  # noqa: BLE001 - Prefect is unreachable; deliveries are answered all the same
                self._state = None
                _log.debug("The open problems cannot be read: %s", error)
            self._ended.wait(self._every)

    def look(self, now: datetime) -> None:
        """Read the problems, and send an event when the sweep falls silent and when it is back."""
        if not PREFECT_API_URL.value():
            return  # Prefect would start an ephemeral server, which outlives the receiver
        with get_client(sync_client=True) as client:
            self._state = read_saved(client)
        silence = next(iter(sweep_silence(self._state.swept, now, watched_since=self._began)), None)
        before, self._silence = self._silence, silence
        if silence is not None and before is None:
            report_opened(silence)
        elif silence is None and before is not None:
            report_resolved(before, now)
