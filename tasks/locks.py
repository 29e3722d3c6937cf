"""Locks on the Prefect server that no dead process and no restarted server keeps for ever.

A lock is a concurrency limit with a lease. The lease of a dead process ends by itself, unless the server forgets it:
a Prefect server keeps leases in memory, if nothing else is set, and its slots in the database, so that after a
restart a slot may be taken by nobody (docs/deploying.md). Whoever waits long, and sees that nothing moves, frees it.
It must not know what is done under a lock.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from typing import Any, Final

import httpx
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import GlobalConcurrencyLimitUpdate, VariableCreate
from prefect.concurrency.sync import concurrency
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
from prefect.logging import get_logger

_LEASE_SECONDS: Final = 60.0  # Prefect's least; the lease of a killed process ends by itself
PATIENCE_SECONDS: Final = 900.0  # work under a lock takes seconds
_SOON_SECONDS: Final = 60.0  # until then nothing is asked but for the slot
_FREED: Final = "assay_freed_"
_logger = get_logger(__name__)  # canceled runs pay nothing, but they lock: outside of a run


@contextmanager
def held(limit: str, *, trace: Callable[[], Any], times_patience: float = 1.0) -> Iterator[None]:
    """Hold a slot of a concurrency limit; without such a limit nothing is held.

    Args:
        limit: its name.
        trace: something that changes whenever somebody works under the lock, such as the time of the last write.
        times_patience: how much longer than others this lock may be held by somebody who lives.
    """
    stack = ExitStack()
    if not _taken(stack, limit, _SOON_SECONDS):
        _take_at_last(stack, limit, trace, times_patience * PATIENCE_SECONDS)
    try:
        yield
    finally:
        # What was done under the lock is done, whether or not the server can be told: its lease ends by itself.
        with suppress(httpx.HTTPError):
            stack.close()


def _take_at_last(stack: ExitStack, limit: str, trace: Callable[[], Any], patience_seconds: float) -> None:
    while True:
        times, before = _times_freed(limit), trace()
        if _taken(stack, limit, patience_seconds):
            return
        if trace() == before:
            _free(limit, times + 1, patience_seconds)


def _taken(stack: ExitStack, limit: str, seconds: float) -> bool:
    try:
        stack.enter_context(
            concurrency(
                limit,
                occupy=1,
                lease_duration=_LEASE_SECONDS,
                timeout_seconds=seconds,
                raise_on_lease_renewal_failure=False,
            )
        )
    except TimeoutError:
        return False
    return True


def _times_freed(limit: str) -> int:
    with get_client(sync_client=True) as client:
        return next(n for n in count() if client.read_variable_by_name(_note(limit, n + 1)) is None)


def _free(limit: str, number: int, waited_seconds: float) -> None:
    """For the `number`th time: the server lets one of those who saw one time less do it, so none frees another's."""
    reason = (
        f"the concurrency limit {limit} was taken for {waited_seconds:.0f} s and nothing moved: the Prefect server "
        "has forgotten who held it, as it does at a restart with leases in memory"
    )
    with get_client(sync_client=True) as client, suppress(ObjectAlreadyExists, ObjectNotFound):
        client.create_variable(VariableCreate(name=_note(limit, number), value=reason, tags=["assay-freed"]))
        client.update_global_concurrency_limit(limit, GlobalConcurrencyLimitUpdate(active_slots=0))
        _logger.warning("%s; it is freed", reason)


def _note(limit: str, number: int) -> str:
    return f"{_FREED}{limit}_{number}"
