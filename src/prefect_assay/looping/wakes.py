"""Finds, for the sweep, the suspended loops that may go on.

A loop that waits is found by a tag, and looked at where it waits: at the designer's run, or at the folder. Only a loop
that would go on is woken.
"""

import re
import time
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun

from prefect_assay.errors import AssayError
from prefect_assay.looping.files import design_files
from prefect_assay.runs.children import older_run
from prefect_assay.runs.queries import read_runs, run_filter
from prefect_assay.runs.states import resume, suspension_key, waits_for_input
from prefect_assay.runs.suspend import this_run
from prefect_assay.runs.tags import GROUP_TAG, LOOP_TAG, LOOPS_TAG, WAITS_TAG, add_tags, tag_values
from prefect_assay.waiting import WaitsFor, waits_for

SETTLE_SECONDS: Final = 30.0
_KEY: Final = re.compile(rf"{WaitsFor.DESIGNS}-(?P<seen>[0-9a-f]+)-until-(?P<until>\d+)(:.*)?")
# A folder that the sweep's worker cannot see is looked at by the loop itself, this often.
_BLIND: Final = timedelta(hours=1)


def run_elsewhere(loop_id: str, scope: str) -> FlowRun | None:
    """The unfinished run that runs this loop already, woken if it waits for designs; None if it is this one's.

    It only saves a second run the work: the loop's log keeps two runs from doing anything twice.
    """
    own = f"{LOOP_TAG}{loop_id}@{scope}"
    add_tags(this_run().id, [LOOPS_TAG, LOOP_TAG + loop_id, own])
    other = older_run(own)
    if other is not None and waits_for(suspension_key(other)) in {WaitsFor.DESIGNS, WaitsFor.DESIGNER}:
        with get_client(sync_client=True) as client:
            resume(client, other.id)
    return other


def loops_to_wake(
    client: SyncPrefectClient, runs: Iterable[FlowRun], now: datetime, problems: list[str]
) -> list[UUID]:
    """Of these suspended runs, the loops whose designer has ended or whose source has changed.

    A loop whose files cannot be looked at is a line of `problems`, and goes on itself an hour after it was suspended.
    """
    found = []
    for run in runs:
        if LOOPS_TAG not in run.tags or waits_for_input(run):
            continue
        match waits_for(suspension_key(run)):
            case WaitsFor.DESIGNER:
                ready = _designer_ended(client, run)
            case WaitsFor.DESIGNS:
                ready = _has_files(run, now, problems)
            case _:
                ready = False
        if ready:
            found.append(run.id)
    return found


def _designer_ended(client: SyncPrefectClient, run: FlowRun) -> bool:
    tags = [GROUP_TAG + group for group in tag_values(run.tags, WAITS_TAG)]
    designers = read_runs(client, run_filter(any_tags=tags)) if tags else []
    return all(designer.state is not None and designer.state.is_final() for designer in designers)


def _has_files(run: FlowRun, now: datetime, problems: list[str]) -> bool:
    key = _KEY.fullmatch(suspension_key(run))
    source = run.parameters.get("source")
    if key is None or not isinstance(source, str) or now.timestamp() >= int(key["until"]):
        return True
    settle = run.parameters.get("settle_seconds", SETTLE_SECONDS)
    try:
        files = design_files(source, now=time.time(), settle=float(settle))
    except Exception as error:  # noqa: BLE001 - what is wrong with one loop must not keep the others asleep
        said = error.message if isinstance(error, AssayError) else f"{type(error).__name__}: {error}"
        problems.append(f"loop run {run.name} waits for files, and the sweep cannot see them: {said}")
        return run.state is not None and now >= run.state.timestamp + _BLIND
    return files.fingerprint() != key["seen"]
