"""The flow run that this code is executed in, and whether it can suspend."""

from prefect.client.schemas.objects import FlowRun
from prefect.context import FlowRunContext

from prefect_assay.errors import ConfigurationError


def can_suspend() -> bool:
    """Return True inside a deployed, top-level flow run: only there does Prefect allow a suspension."""
    context = FlowRunContext.get()
    return bool(
        context
        and context.flow_run
        and context.flow_run.deployment_id
        and not context.flow_run.parent_task_run_id
    )


def this_run() -> FlowRun:
    """The run that this code is executed in.

    Raises:
        ConfigurationError: there is no run.
    """
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        raise ConfigurationError("this step works within a flow run only")
    return context.flow_run
