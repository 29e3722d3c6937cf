"""The work pool of the flows: its name, its queues, the commands of its workers and how many runs one takes at once.

The workers are Prefect's own. `sweep` and `decide` have a queue and, in a process pool, a worker of their own: runs that
hang must not keep them waiting.
"""

import os
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Final

WORK_POOL: Final = "assay"
PROCESS: Final = "process"
FLOW_QUEUE: Final = "default"
SWEEP_QUEUE: Final = "sweep"
SWEEP_LIMIT: Final = 2  # one sweep, and one decision
# A run that archives and reports: Prefect and SciPy in a process of its own.
_RUN_BYTES: Final = 400_000_000
_RUNS_PER_CORE: Final = 4
_CGROUP_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")


def worker_command(queue: str, limit: int) -> list[str]:
    """Arguments for the interpreter: Prefect's process worker for one queue of the pool."""
    pool = ["--pool", WORK_POOL, "--type", PROCESS, "--work-queue", queue]
    return ["-m", "prefect", "worker", "start", *pool, "--limit", str(limit)]


def worker_commands(pool: str, pool_type: str) -> list[str]:
    """What a person starts for a pool whose runs need workers.

    A process worker runs flows on its own machine, so it has a limit. Workers of other types only start containers.
    """
    start = f"prefect worker start --pool {shlex.quote(pool)} --type {shlex.quote(pool_type)}"
    if pool_type != PROCESS:
        return [start]
    limits = ((FLOW_QUEUE, default_limit()), (SWEEP_QUEUE, SWEEP_LIMIT))
    return [f"{start} --work-queue {queue} --limit {limit}" for queue, limit in limits]


def default_limit() -> int:
    """How many runs this machine takes at once: half of its memory, at most four per core."""
    by_memory = _memory_bytes() // 2 // _RUN_BYTES
    return max(1, min(by_memory, _RUNS_PER_CORE * (os.cpu_count() or 1)))


def _memory_bytes() -> int:
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no container, or "max"
        return min(installed, int(_CGROUP_LIMIT.read_text()))
    return installed
