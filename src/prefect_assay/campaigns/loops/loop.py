"""`Loop`: the settings, archive and log that all rounds of a loop share. Knows nothing of any one round."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Final

from prefect_assay.blocks import Archive, AssayCredentials
from prefect_assay.campaigns.loops.history import Placed
from prefect_assay.campaigns.loops.loop_log import LoopLog
from prefect_assay.designs.options import LoopOptions, ReadingOptions
from prefect_assay.service.models.spec import Assay

LOOP_ID: Final = "[A-Za-z0-9][A-Za-z0-9._-]{0,29}"
_SHORTEST_PAUSE: Final = timedelta(minutes=5)
_LONGEST_PAUSE: Final = timedelta(hours=1)
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


def pause_after(waited: timedelta) -> timedelta:
    """How long to wait until the next look: the longer the wait so far, the rarer, from five minutes to an hour."""
    return min(max(waited / 10, _SHORTEST_PAUSE), _LONGEST_PAUSE)


@dataclass(frozen=True)
class Waiting:
    """There is nothing to measure yet: what is waited for, when to look again, and a look that says whether to go on."""

    message: str  # for people
    pause: timedelta
    has_news: Callable[[], bool]


@dataclass(frozen=True)
class Loop:
    """What all rounds of a loop share."""

    loop_id: str
    source: str | None
    designer: str | None
    assay: Assay
    credentials: AssayCredentials
    archive: Archive
    reading: ReadingOptions
    options: LoopOptions
    placed: Placed
    # Both are known once the loop has begun. Failed rounds and the runs of a designer belong to a start of the loop.
    start: datetime = _NEVER
    archive_id: str = ""

    @cached_property
    def loop_log(self) -> LoopLog:
        """The loop's log, opened on first use."""
        return LoopLog(self.archive.get_store(), self.archive.prefix, self.loop_id)

    @property
    def n(self) -> int:
        """How many designs a designer is asked for."""
        return self.options.designs_per_round or self.reading.designs_per_experiment
