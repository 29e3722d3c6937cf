"""The work pool of the flows: its name, its queues, and how many runs a process worker takes at once.

The workers are Prefect's own. The sweep has a queue and a worker of its own: runs that hang must not keep it waiting.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

WORK_POOL: Final = "assay"
FLOW_QUEUE: Final = "default"
SWEEP_QUEUE: Final = "sweep"
# A run that archives and reports: Prefect, SciPy and matplotlib in a process of its own.
_RUN_BYTES: Final = 400_000_000
_RUNS_PER_CORE: Final = 4
_CGROUP_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")


def worker_command(queue: str, limit: int) -> list[str]:
    """Arguments for the interpreter: Prefect's process worker for one queue of the pool."""
    pool = ["--pool", WORK_POOL, "--type", "process", "--work-queue", queue]
    return ["-m", "prefect", "worker", "start", *pool, "--limit", str(limit)]


def default_limit() -> int:
    """How many runs this machine takes at once: half of its memory, at most four per core."""
    by_memory = _memory_bytes() // 2 // _RUN_BYTES
    return max(1, min(by_memory, _RUNS_PER_CORE * (os.cpu_count() or 1)))


def _memory_bytes() -> int:
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no container, or "max"
        return min(installed, int(_CGROUP_LIMIT.read_text()))
    return installed
