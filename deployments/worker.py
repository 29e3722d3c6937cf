"""The process worker of the pool `assay`: `prefect-assay worker`.

Prefect's own worker with its options (`--name`, `--limit`, `--work-queue`, ...) and four differences:

- It polls as `runner.env` says, unless the setting `worker.query_seconds` is configured.
- A flow's process starts at once. Prefect first starts one that prepares the folder, with two seconds of imports; the
  deployments of `prefect.yaml` pull no code.
- That process is forked (`prefork`).
- A crash is reported once.
"""

import sys
from typing import Any

import httpx
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import FlowRun
from prefect.utilities.processutils import command_to_string, get_sys_executable
from prefect.workers.process import ProcessJobConfiguration, ProcessWorker

from prefect_assay.deployments.settings_files import RUNNER, set_defaults, settings_of
from prefect_assay.deployments.setup import WORK_POOL
from prefect_assay.prefork import fork_flow_runs


class EngineConfiguration(ProcessJobConfiguration):
    """Runs this interpreter's engine if neither deployment nor pool names a command."""

    def prepare_for_flow_run(self, *args: Any, **kwargs: Any) -> None:
        """Set the command, then prepare as Prefect does."""
        if self.command is None:
            self.command = command_to_string([get_sys_executable(), "-m", "prefect.engine"])
        super().prepare_for_flow_run(*args, **kwargs)


def report_crashes_once() -> None:
    """Suppress the worker's second report of a crash, which would undo a reschedule since the runner's first."""
    report = getattr(ProcessWorker, "_propose_crashed_state", None)
    if report is None:  # another version of Prefect
        return

    async def report_once(self: ProcessWorker, flow_run: FlowRun, *args: Any, **options: Any) -> None:
        if not await _crashed_since(self.client, flow_run):
            await report(self, flow_run, *args, **options)

    # Prefect has no hook for it, and the worker's class is looked up by its type.
    ProcessWorker._propose_crashed_state = report_once  # type: ignore[method-assign, assignment]  # noqa: SLF001


async def _crashed_since(client: PrefectClient, start: FlowRun) -> bool:
    """Whether the run was reported as crashed after the worker took it."""
    if start.updated is None:
        return False
    try:
        states = await client.read_flow_run_states(start.id)
    except httpx.HTTPError:  # two reports are better than none
        return False
    return any(state.is_crashed() and state.timestamp > start.updated for state in states)


def start(arguments: list[str]) -> None:
    """Run the worker until it is stopped; `arguments` are those of `prefect worker start`."""
    from prefect.cli import app  # noqa: PLC0415 - Prefect's command, which reads its words from sys.argv

    set_defaults(settings_of(RUNNER))
    ProcessWorker.job_configuration = EngineConfiguration
    report_crashes_once()
    fork_flow_runs()
    sys.argv = ["prefect", "worker", "start", "--pool", WORK_POOL, "--type", "process", *arguments]
    app()


if __name__ == "__main__":
    start(sys.argv[1:])
