"""A process worker for the pool `assay` that wakes runs fast: `prefect-assay worker`.

It is Prefect's own worker and takes its options (`--name`, `--limit`, `--work-queue`, ...). Four things differ. It
asks for runs once a second, unless the setting `worker.query_seconds` says otherwise. A flow's process is started at once,
where Prefect first starts one that prepares the folder (two seconds of imports; the deployments of `prefect.yaml`
pull no code). It is forked (`warm.py`). And a crash is reported once.
"""

import sys
from typing import Any

import httpx
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import FlowRun
from prefect.utilities.processutils import command_to_string, get_sys_executable
from prefect.workers.process import ProcessJobConfiguration, ProcessWorker

from prefect_assay.deployments.settings_files import set_defaults
from prefect_assay.deployments.setup import WORK_POOL
from prefect_assay.prefork.starter import fork_flow_runs


class EngineConfiguration(ProcessJobConfiguration):
    """Runs the engine of this interpreter, where neither deployment nor pool names a command."""

    def prepare_for_flow_run(self, *args: Any, **kwargs: Any) -> None:
        """Prefect's preparation, with the command named."""
        if self.command is None:
            self.command = command_to_string([get_sys_executable(), "-m", "prefect.engine"])
        super().prepare_for_flow_run(*args, **kwargs)


def report_crashes_once() -> None:
    """Leave out the second report of a crash.

    Prefect's worker reports a process that has ended badly after its runner has done so. An automation may have
    scheduled the run again by then, and the second report would undo that.
    """
    report = getattr(ProcessWorker, "_propose_crashed_state", None)
    if report is None:  # a Prefect with other insides
        return

    async def report_once(self: ProcessWorker, flow_run: FlowRun, *args: Any, **options: Any) -> None:
        if not await _crashed_since(self.client, flow_run):
            await report(self, flow_run, *args, **options)

    # Prefect has no hook for it, and the worker's class is looked up by its type.
    ProcessWorker._propose_crashed_state = report_once  # type: ignore[method-assign, assignment]  # noqa: SLF001


async def _crashed_since(client: PrefectClient, start: FlowRun) -> bool:
    """Whether the run has been reported as crashed since the worker has taken it, which it does without its state."""
    if start.updated is None:
        return False
    try:
        states = await client.read_flow_run_states(start.id)
    except httpx.HTTPError:  # rather twice than never
        return False
    return any(state.is_crashed() and state.timestamp > start.updated for state in states)


def look_often() -> None:
    """Look for runs once a second, unless the environment or a profile says otherwise."""
    set_defaults({"PREFECT_WORKER_QUERY_SECONDS": "1"})


def start(arguments: list[str], *, warm: bool = True) -> None:
    """Run the worker until it is stopped; `arguments` are those of `prefect worker start`."""
    from prefect.cli import app  # noqa: PLC0415 - Prefect's command, which reads its words from sys.argv

    look_often()
    ProcessWorker.job_configuration = EngineConfiguration
    report_crashes_once()
    if warm:
        fork_flow_runs()
    sys.argv = ["prefect", "worker", "start", "--pool", WORK_POOL, "--type", "process", *arguments]
    app()


if __name__ == "__main__":
    start(sys.argv[1:])
