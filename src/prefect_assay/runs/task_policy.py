"""The policy that tasks share. Every task asks the service first, so none needs a cache: each may run twice."""

from typing import Any, Final

from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.tasks import Task

from prefect_assay.errors import TransientError


def is_transient(task: Task[..., Any], task_run: TaskRun, state: State[Any]) -> bool:
    """Retry only what the error tree calls transient: a wrong token or a bad sequence stays wrong."""
    del task, task_run
    try:
        state.result()
    except TransientError:
        return True
    except Exception:  # noqa: BLE001 - any other failure ends the task as it is
        return False
    return False


# Reading may be repeated at will; the client has already retried for some seconds by itself.
READ: Final[dict[str, Any]] = {
    "retries": 3,
    "retry_delay_seconds": [5, 20, 60],
    "retry_condition_fn": is_transient,
    "cache_policy": NO_CACHE,
    "persist_result": False,
}

# Nothing that may already have taken effect is repeated by Prefect.
ONCE: Final[dict[str, Any]] = {"retries": 0, "cache_policy": NO_CACHE, "persist_result": False}
