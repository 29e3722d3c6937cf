"""When a suspended run wants to be woken, kept in the key of its suspension: `look-<failures>-<time>-<random>`.

The run writes it, the sweep reads it. Prefect's own time-out of the suspension is far later.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import uuid4

from prefect.client.schemas.objects import FlowRun, State

LOOK: Final = timedelta(hours=6)  # without news; the sweep reads the updates feed in between
FIRST_PAUSE: Final = timedelta(minutes=5)  # after a failure; doubles with each in a row
LONGEST_PAUSE: Final = timedelta(hours=1)

_KEY: Final = re.compile(r"look-(?P<failures>\d+)-(?P<at>\d+)-[0-9a-f]{32}")


@dataclass(frozen=True)
class Look:
    """The next look of a suspended run: after how many failures in a row, and when."""

    failures: int
    at: datetime

    @classmethod
    def after_success(cls, now: datetime, pause: timedelta = LOOK) -> "Look":
        """The next look of a run that has read everything."""
        return cls(0, now + pause)

    @classmethod
    def after_failure(cls, now: datetime, failures: int) -> "Look":
        """The next look after this many failures in a row, from 1."""
        return cls(failures, now + min(FIRST_PAUSE * 2 ** min(failures - 1, 10), LONGEST_PAUSE))

    def new_key(self) -> str:
        """A suspension key that was never used: Prefect lets a run pass a key that fired once."""
        return f"look-{self.failures}-{int(self.at.timestamp())}-{uuid4().hex}"


def look_of_state(state: State | None) -> Look | None:
    """The look that a suspended state names; None for a form, for a suspension by hand, and for any other state."""
    key = (state.state_details.pause_key or "") if state else ""
    match = _KEY.fullmatch(key)
    return Look(int(match["failures"]), datetime.fromtimestamp(int(match["at"]), UTC)) if match else None


def look_of(run: FlowRun) -> Look | None:
    """See `look_of_state`."""
    return look_of_state(run.state) if run.state is not None and run.state.is_paused() else None
