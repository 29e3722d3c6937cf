"""Keeps what one sweep has done. Each part fails alone, and the next sweep does the rest."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient

from prefect_assay.campaigns.runs.states import resume_run
from prefect_assay.errors import shortened
from prefect_assay.service.transient_failures import is_unreachable


@dataclass
class SweepProgress:
    """The runs resumed and started so far, the campaigns stopped, one line for people per problem, and the parts that failed."""

    prefect: SyncPrefectClient
    now: datetime
    woken: list[UUID] = field(default_factory=list)
    started: list[str] = field(default_factory=list)  # names of runs
    stopped: list[str] = field(default_factory=list)  # ids of campaigns and loops
    problems: list[str] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)
    _was_prefect_unreachable: bool = False

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Record any failure as a problem of this part. If Prefect is unreachable in two parts in a row, the sweep ends."""
        try:
            yield
        except Exception as error:
            if self._was_prefect_unreachable and is_unreachable(error):
                raise
            self._was_prefect_unreachable = is_unreachable(error)
            self.failed.add(name)
            self.problems.append(shortened(f"{name}: {error}", 600))
        else:
            self._was_prefect_unreachable = False

    def wake(self, run_ids: Iterable[UUID]) -> bool:
        """Resume runs one by one: SQLite refuses some of many writers at once. False if a request failed."""
        failed = len(self.failed)
        for run_id in run_ids:
            if run_id not in self.woken:
                with self.part(f"waking run {run_id}"):
                    if resume_run(self.prefect, run_id):
                        self.woken.append(run_id)
        return len(self.failed) == failed
