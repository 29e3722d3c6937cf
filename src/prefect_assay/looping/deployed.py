"""A designer that is a deployment: started once per round, waited for without a process, read when it has completed.

It gets those of these parameters that its flow has: `loop_id`, `round`, `n`, `budget_cents`; `history`, the address of a
table of all measured designs; `measurements` and `round_name`, the table and name of the round before; `candidates`, the
address to write to. One without `candidates` writes a file into the loop's source.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import ObjectNotFound

from prefect_assay.archive import LocalStore
from prefect_assay.archive.store import join_key
from prefect_assay.designs import Reading, read_pool
from prefect_assay.errors import ConfigurationError, DesignerFailed
from prefect_assay.looping.book import LoopBook, PoolFile
from prefect_assay.runs import PollPolicy
from prefect_assay.runs.children import start_child, wait_for_children
from prefect_assay.waiting import WaitsFor

WRITES_TO: Final = "candidates"  # the parameter with the address
_PROPOSED: Final = "PROPOSED"


def run_designer(
    deployment: str,
    offered: Mapping[str, Any],
    *,
    book: LoopBook,
    number: int,
    scope: str,
    timeout: timedelta,
    poll: PollPolicy,
    left: Callable[[bool], bool],
) -> bool:
    """Start the designer for a round, or find its run, and wait until it has completed; True if it takes `candidates`.

    `left` says, given that, whether a completed run left designs that can be ordered; else a Retry starts another one.

    Raises:
        ConfigurationError: there is no such deployment.
        DesignerFailed: its run failed, crashed or was canceled; a Retry of the loop starts it again.
    """
    known = _parameters_of(deployment)
    address = candidates_address(book, number)
    given = {name: value for name, value in {**offered, WRITES_TO: address}.items() if name in known}
    group = f"designer-{book.loop_id}-{number}@{scope}"
    child = start_child(
        deployment,
        f"assay-{group}",
        given,
        run_name=f"{book.loop_id}, round {number}: designs",
        groups=[group],
        is_done=lambda _run: left(WRITES_TO in known),
        ended=_is_final,
    )
    ended = wait_for_children(
        [child.id], group=group, timeout=timeout, kind=WaitsFor.DESIGNER, ended=_is_final, poll=poll
    )
    state = ended[0].state if ended else None
    if state is None or not state.is_completed():
        how = f"{state.name}: {state.message}" if state else "it was deleted"
        raise DesignerFailed(
            f"round {number}: the designer's run {child.name} gave no designs ({how}); nothing was ordered. Correct "
            "it, then press Retry or start the loop again"
        )
    return WRITES_TO in known


def candidates_address(book: LoopBook, number: int) -> str:
    """Where the designer of a round writes its candidates: a path, or an `s3://` address."""
    key = _candidates_key(book, number)
    if isinstance(book.store, LocalStore):
        Path(book.store.location(key)).parent.mkdir(parents=True, exist_ok=True)
    return book.store.location(key)


def proposed_pool(book: LoopBook, number: int, deployment: str, reading: Reading) -> PoolFile:
    """Keep what the designer has written; a later change of its file changes nothing.

    Raises:
        DesignerFailed: it has written nothing.
        InvalidSequences: what it has written cannot be ordered, with every finding.
    """
    body = book.store.find(_candidates_key(book, number))
    where = candidates_address(book, number)
    if not body:
        raise DesignerFailed(
            f"round {number}: {deployment} completed without writing candidates to {where}; nothing was ordered. "
            "Correct it, then press Retry or start the loop again"
        )
    designs = len(read_pool(where, data=body, reading=reading))
    with TemporaryDirectory(prefix="assay-") as folder:
        path = Path(folder) / "candidates.csv"
        path.write_bytes(body)
        return book.keep_file(path, path.name, designs)


def _candidates_key(book: LoopBook, number: int) -> str:
    return join_key(book.folder, _PROPOSED, f"{number:06d}.csv")


def _parameters_of(deployment: str) -> set[str]:
    with get_client(sync_client=True) as client:
        try:
            found = client.read_deployment_by_name(deployment)
        except ObjectNotFound:
            raise ConfigurationError(
                f"designer: there is no deployment {deployment}; nothing was ordered. Deploy it, or correct its name"
            ) from None
    return set((found.parameter_openapi_schema or {}).get("properties", {}))


def _is_final(run: FlowRun) -> bool:
    """Unlike a run of this package, a crashed designer is not started again by anything."""
    return run.state is not None and run.state.is_final()
