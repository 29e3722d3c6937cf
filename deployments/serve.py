"""Serves the flows from one process, without a work pool: `python -m prefect_assay.deployments.serve`."""

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final, cast

from prefect import serve
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy
from prefect.deployments.runner import RunnerDeployment
from prefect.flows import Flow
from prefect.settings import get_current_settings
from prefect.types.entrypoint import EntrypointType

from prefect_assay.blocks.deployment_runs import deployment_name, deployment_of, find_deployment
from prefect_assay.deployments.server_checks import sweep_advice
from prefect_assay.deployments.settings_files import RUNNER, read_shipped_settings, set_defaults
from prefect_assay.deployments.setup import register_cancellation_automation, shipped_deployments
from prefect_assay.flows import campaign, decide, design_build_test, sweep

SWEEP_INTERVAL: Final = timedelta(minutes=5)
_ONE_AT_A_TIME: Final = ConcurrencyLimitConfig(
    limit=1, collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW
)
_CHOSEN_BY_OPERATORS: Final = frozenset({"job_variables", "parameters", "paused"})
_SCHEDULING: Final = frozenset({"schedules", "concurrency_limit", "concurrency_options"})


def serve_flows(sweep_interval: timedelta | None = SWEEP_INTERVAL, *, with_automations: bool = True) -> None:
    """Serve the flows until stopped, polling as `runner.env` says; None leaves the sweep unscheduled."""
    set_defaults(read_shipped_settings(RUNNER))
    os.environ["PYTHONSAFEPATH"] = "1"  # Prefect starts each run with `python -m`, in this folder
    seconds = float(get_current_settings().runner.poll_frequency)
    # Schedules are not paused at the end: another process may serve them by then, and `prefect-assay deploy` would
    # keep the pause as an operator's choice.
    served = served_deployments(sweep_interval)
    if with_automations:  # the automation names its deployment, so that is made first
        next(one for one in served if one.flow_name == decide.name).apply()
        with get_client(sync_client=True) as client:
            register_cancellation_automation(client)
    serve(*served, query_seconds=seconds, pause_on_shutdown=False)


def paused_sweep_advice() -> tuple[str, ...]:
    """Sentences about a sweep that is paused, and stays so when it is served."""
    with get_client(sync_client=True) as client:
        sweep = find_deployment(client, deployment_of("sweep"))
    return sweep_advice(sweep) if sweep is not None and sweep.paused else ()


def served_deployments(sweep_interval: timedelta | None = SWEEP_INTERVAL) -> list[RunnerDeployment]:
    """The deployments of `prefect.yaml`, for a served process; None leaves the sweep unscheduled."""
    shipped = {
        entry["entrypoint"].rpartition(":")[2]: entry for entry in shipped_deployments()["deployments"]
    }
    flows = (campaign, design_build_test, decide, sweep)
    return [
        _make_deployment(flow, shipped[flow.fn.__name__], sweep_interval if flow is sweep else None)
        for flow in flows
    ]


def _make_deployment(
    flow: Flow[..., Any], shipped: Mapping[str, Any], interval: timedelta | None
) -> RunnerDeployment:
    made = flow.to_deployment(
        deployment_name(flow.name),
        description=shipped["description"],
        tags=shipped["tags"],
        interval=interval,
        entrypoint_type=EntrypointType.MODULE_PATH,
        # Runs that a schedule has started while no process served end at once, instead of one after another.
        concurrency_limit=_ONE_AT_A_TIME if interval else None,
    )
    deployment = cast("RunnerDeployment", made)  # a coroutine only where an event loop runs
    # Prefect overwrites an existing deployment with each field that is set, None and empty ones included.
    deployment.model_fields_set.difference_update(
        _CHOSEN_BY_OPERATORS if interval else _CHOSEN_BY_OPERATORS | _SCHEDULING
    )
    return deployment


if __name__ == "__main__":
    serve_flows()
