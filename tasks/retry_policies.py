"""When Prefect repeats a task, and when it must not.

Every task reads the service first, so each may run twice and needs no cache.
"""

from typing import Any, Final

from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.tasks import Task

from prefect_assay.errors import TransientError


def is_transient(task: Task[..., Any], task_run: TaskRun, state: State[Any]) -> bool:
    """Return True if the task failed with a `TransientError`; a wrong token or a bad sequence stays wrong."""
    del task, task_run
    try:
        state.result()
    except TransientError:
        return True
    except Exception:  # noqa: BLE001 - any other failure ends the task
        return False
    return False


# Reads may be repeated at will; the client has retried for some seconds already.
READ: Final[dict[str, Any]] = {
    "retries": 3,
    "retry_delay_seconds": [5, 20, 60],
    "retry_condition_fn": is_transient,
    "cache_policy": NO_CACHE,
    "persist_result": False,
}

# Prefect repeats nothing that may have taken effect already.
ONCE: Final[dict[str, Any]] = {
    "retries": 0,
    "retry_delay_seconds": 0,
    "cache_policy": NO_CACHE,
    "persist_result": False,
}
