"""A designer that is a deployment: started once per round, waited for without a process, read when it has completed.

It gets those of these parameters that its flow has: `loop_id`, `round`, `n`, `budget_cents`; `history`, the address of a
table of all measured designs; `measurements` and `round_name`, the table and name of the round before; `candidates`, the
address to write to. One without `candidates` writes a file into the loop's source.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import ObjectNotFound

from prefect_assay.archive import LocalStore
from prefect_assay.archive.store import join_key
from prefect_assay.blocks.deployment_runs import find_deployment, start_run
from prefect_assay.campaigns.loops.loop import Loop, Waiting, pause_after
from prefect_assay.campaigns.loops.loop_log import LoopLog, PoolFile
from prefect_assay.designs.options import ReadingOptions
from prefect_assay.designs.read import read_pool
from prefect_assay.errors import ConfigurationError, DesignerFailed

WRITES_TO: Final = "candidates"  # the parameter with the address
DESIGNS_FOR_TAG: Final = "assay-designs-for:"  # <loop id>: the run of its designer
START_TAG: Final = "assay-start:"  # <time>: the start of the loop that has started the designer's run
_PROPOSED: Final = "PROPOSED"
_ATTEMPTS_MAX: Final = 50


def run_designer(
    loop: Loop, number: int, offered: Mapping[str, Any], *, has_designs: Callable[[bool], bool]
) -> bool | Waiting:
    """Start the designer for a round, or find its run; once it has completed, True if it takes `candidates`.

    `has_designs` says, given that, whether a completed run left designs that can be ordered. A run that failed, or left
    none, ends this start of the loop; the next start has the designer run again.

    Raises:
        ConfigurationError: there is no such deployment.
        DesignerFailed: its run failed, crashed or was canceled.
    """
    deployment = str(loop.designer)
    known = _parameters_of(deployment)
    address = candidates_address(loop.loop_log, number)
    parameters = {name: value for name, value in {**offered, WRITES_TO: address}.items() if name in known}
    start_tag = f"{START_TAG}{loop.start.isoformat()}"
    run = _start_or_find(loop, number, parameters, start_tag, lambda: has_designs(WRITES_TO in known))
    state = run.state
    if state is None or not state.is_final():
        began = run.start_time or run.created or datetime.now(UTC)
        return Waiting(
            f"waits for the designer's run {run.name} of round {number}",
            pause_after(datetime.now(UTC) - began),
            lambda: _has_ended(run),
        )
    if not state.is_completed():
        raise DesignerFailed(
            f"round {number}: the designer's run {run.name} gave no designs ({state.name}: {state.message}); nothing was "
            "ordered. Correct it, then press Retry or start the loop again"
        )
    return WRITES_TO in known


def _start_or_find(
    loop: Loop, number: int, parameters: Mapping[str, Any], start_tag: str, has_designs: Callable[[], bool]
) -> FlowRun:
    """The run of this round: one that goes on, has left designs, or was started by this start of the loop."""
    for attempt in range(1, _ATTEMPTS_MAX + 1):
        run = start_run(
            str(loop.designer),
            parameters,
            name=f"{loop.loop_id}, round {number}: designs",
            tags=[DESIGNS_FOR_TAG + loop.loop_id, start_tag],
            idempotency_key=f"assay-designer-{loop.loop_id}-{number}@{loop.archive_id}-{attempt}",
        )
        ended = run.state is not None and run.state.is_final()
        completed = run.state is not None and run.state.is_completed()
        if not ended or start_tag in run.tags or (completed and has_designs()):
            return run
    raise ConfigurationError(
        f"round {number}: the designer {loop.designer} has failed {_ATTEMPTS_MAX} times; nothing was ordered. Look at its "
        "runs in the Prefect UI"
    )


def _has_ended(run: FlowRun) -> bool:
    with get_client(sync_client=True) as client:
        try:
            state = client.read_flow_run(run.id).state
        except ObjectNotFound:  # the next execution starts another one
            return True
    return state is not None and state.is_final()


def candidates_address(loop_log: LoopLog, number: int) -> str:
    """Where the designer of a round writes its candidates: a path, or an `s3://` address."""
    key = _candidates_key(loop_log, number)
    if isinstance(loop_log.store, LocalStore):
        Path(loop_log.store.location(key)).parent.mkdir(parents=True, exist_ok=True)
    return loop_log.store.location(key)


def proposed_pool(loop_log: LoopLog, number: int, deployment: str, reading: ReadingOptions) -> PoolFile:
    """Keep what the designer has written; a later change of its file changes nothing.

    Raises:
        DesignerFailed: it has written nothing.
        InvalidSequences: what it has written cannot be ordered, with every finding.
    """
    body = loop_log.store.find(_candidates_key(loop_log, number))
    where = candidates_address(loop_log, number)
    if not body:
        raise DesignerFailed(
            f"round {number}: {deployment} completed without writing candidates to {where}; nothing was ordered. "
            "Correct it, then press Retry or start the loop again"
        )
    designs = len(read_pool(where, data=body, reading=reading))
    with TemporaryDirectory(prefix="assay-") as folder:
        path = Path(folder) / "candidates.csv"
        path.write_bytes(body)
        return loop_log.keep_file(path, path.name, designs)


def _candidates_key(loop_log: LoopLog, number: int) -> str:
    return join_key(loop_log.folder, _PROPOSED, f"{number:06d}.csv")


def _parameters_of(name: str) -> set[str]:
    with get_client(sync_client=True) as client:
        deployment = find_deployment(client, name)
    if deployment is None:
        raise ConfigurationError(
            f"designer: there is no deployment {name}; nothing was ordered. Deploy it, or correct its name"
        )
    return set((deployment.parameter_openapi_schema or {}).get("properties", {}))
