"""Flows whose suspended runs outlive a change of version: a parameter that only a newer version knows does not end them.

A run that was suspended under version N+1 and wakes under N (a roll-back) has stored parameters that N does not know.
Prefect would fail it before its first line. Here they are left out with a warning; what would order something asks
`refuse_unknown_parameters` first, because the parameter may be a limit.
"""

import inspect
import logging
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from prefect.context import FlowRunContext
from prefect.flows import Flow

from prefect_assay.errors import ConfigurationError

P = ParamSpec("P")
R = TypeVar("R")

_log = logging.getLogger("prefect_assay.flows")


class DurableFlow(Flow[P, R]):
    """A flow that leaves out stored parameters it does not know. A call in Python refuses them as ever."""

    def validate_parameters(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """The known parameters, cast to their types.

        Raises:
            ParameterTypeError: a known one is not valid.
        """
        known = {name: value for name, value in parameters.items() if name in _names(self)}
        if len(known) < len(parameters):
            unknown = ", ".join(sorted(parameters.keys() - known.keys()))
            _log.warning("This version knows no %s; a newer one has stored it with the run", unknown)
        return super().validate_parameters(known)


def durable_flow(**options: Any) -> Callable[[Callable[P, R]], DurableFlow[P, R]]:
    """`prefect.flow`, for flows that wait for days; takes the same options."""

    def decorated(function: Callable[P, R]) -> DurableFlow[P, R]:
        return DurableFlow(function, **options)

    return decorated


def refuse_unknown_parameters() -> None:
    """Called before anything is ordered.

    Raises:
        ConfigurationError: the run has a parameter that only a newer version knows.
    """
    context = FlowRunContext.get()
    if context is None or context.flow_run is None or context.flow is None:
        return
    unknown = context.flow_run.parameters.keys() - _names(context.flow)
    if unknown:
        raise ConfigurationError(
            f"a newer version of prefect-assay has started this run, with {', '.join(sorted(unknown))}, which this "
            "version does not know; nothing was ordered. Upgrade, and run it again"
        )


def _names(flow: Flow[..., Any]) -> set[str]:
    return set(inspect.signature(flow.fn).parameters)
