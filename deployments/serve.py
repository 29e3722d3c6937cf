"""Serve the flows from one process, without a work pool: `python -m prefect_assay.deployments.serve`."""

from datetime import timedelta
from typing import Any, Final, cast

from prefect import serve
from prefect.deployments.runner import RunnerDeployment
from prefect.flows import Flow
from prefect.types.entrypoint import EntrypointType

from prefect_assay.flows import campaign, design_build_test, experiment, sweep
from prefect_assay.flows.children import DEPLOYMENT_NAME

SWEEP_INTERVAL: Final = timedelta(minutes=5)


def served_deployments(sweep_interval: timedelta | None = SWEEP_INTERVAL) -> list[RunnerDeployment]:
    """The deployments of `prefect.yaml`, for a served process; None leaves the sweep unscheduled."""
    return [
        _deployment(experiment),
        _deployment(campaign),
        _deployment(design_build_test),
        _deployment(sweep, interval=sweep_interval),
    ]


def _deployment(flow: Flow[..., Any], interval: timedelta | None = None) -> RunnerDeployment:
    deployment = flow.to_deployment(
        DEPLOYMENT_NAME, tags=["assay"], interval=interval, entrypoint_type=EntrypointType.MODULE_PATH
    )
    return cast("RunnerDeployment", deployment)  # a coroutine only where an event loop runs


if __name__ == "__main__":
    serve(*served_deployments())
