"""A process worker for the pool `assay` that wakes runs fast: `prefect-assay worker`.

It is Prefect's own worker and takes its options (`--name`, `--limit`, `--work-queue`, ...). Three things differ. It
asks for runs once a second, unless PREFECT_WORKER_QUERY_SECONDS says otherwise. A flow's process is started at once,
where Prefect first starts one that prepares the folder (two seconds of imports; the deployments of `prefect.yaml`
pull no code). And it is forked (`warm.py`).
"""

import os
import sys
from typing import Any

if __name__ == "__main__":  # Prefect reads its settings when it is imported
    os.environ.setdefault("PREFECT_WORKER_QUERY_SECONDS", "1")

from prefect.utilities.processutils import command_to_string, get_sys_executable
from prefect.workers.process import ProcessJobConfiguration, ProcessWorker

from prefect_assay.deployments.setup import WORK_POOL
from prefect_assay.deployments.warm import fork_flow_runs


class EngineConfiguration(ProcessJobConfiguration):
    """Runs the engine of this interpreter, where neither deployment nor pool names a command."""

    def prepare_for_flow_run(self, *args: Any, **kwargs: Any) -> None:
        """Prefect's preparation, with the command named."""
        if self.command is None:
            self.command = command_to_string([get_sys_executable(), "-m", "prefect.engine"])
        super().prepare_for_flow_run(*args, **kwargs)


def start(arguments: list[str], *, warm: bool = True) -> None:
    """Run the worker until it is stopped; `arguments` are those of `prefect worker start`."""
    from prefect.cli import app  # noqa: PLC0415 - Prefect's command, which reads its words from sys.argv

    ProcessWorker.job_configuration = EngineConfiguration
    if warm:
        fork_flow_runs()
    sys.argv = ["prefect", "worker", "start", "--pool", WORK_POOL, "--type", "process", *arguments]
    app()


if __name__ == "__main__":
    start(sys.argv[1:])
