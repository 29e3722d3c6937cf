"""`Loop`: the settings, archive and log that all rounds of a loop share. Knows nothing of any one round."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Final

from prefect_assay.blocks import Archive, AssayCredentials
from prefect_assay.designs import Reading
from prefect_assay.looping.book import LoopBook
from prefect_assay.looping.history import Placed
from prefect_assay.models.selection import SelectionSettings
from prefect_assay.models.spec import Assay
from prefect_assay.runs import PollPolicy

LOOP_ID: Final = "[A-Za-z0-9][A-Za-z0-9._-]{0,29}"


@dataclass(frozen=True)
class Loop:
    """What all rounds of a loop share."""

    loop_id: str
    source: str | None
    designer: str | None
    assay: Assay
    credentials: AssayCredentials
    archive: Archive
    reading: Reading
    designs_per_round: int | None
    max_rounds: int
    selection: SelectionSettings | None
    per_experiment: int
    settle_seconds: float
    wait_days: float
    poll: PollPolicy
    timeout: timedelta
    scope: Callable[[], str]  # separates its runs from those of another archive; asks the service
    placed: Placed

    @cached_property
    def book(self) -> LoopBook:
        """The loop's log, opened on first use."""
        return LoopBook(self.archive.get_store(), self.archive.prefix, self.loop_id)

    @property
    def n(self) -> int:
        """How many designs a designer is asked for."""
        return self.designs_per_round or self.per_experiment
