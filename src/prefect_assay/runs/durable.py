"""Flows whose suspended runs survive a change of version and failures of the Prefect API.

While Prefect is away, the run crashes in place of failing, so that it is rescheduled.
"""

import copy
import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, ParamSpec, Self, TypeVar

import httpx
from prefect.blocks.core import UnknownBlockType
from prefect.client.schemas.objects import FlowRun
from prefect.concurrency.asyncio import ConcurrencySlotAcquisitionError
from prefect.context import FlowRunContext
from prefect.exceptions import ParameterTypeError
from prefect.flows import Flow
from prefect.runtime import flow_run

from prefect_assay.errors import ConfigurationError, short_messages
from prefect_assay.events import EVENTS_LABEL, recording
from prefect_assay.runs.block_references import (
    UNUSABLE,
    Unusable,
    placeholder,
    references,
    unusable,
    with_saved_blocks,
)
from prefect_assay.runs.children import deployment_of, start_run
from prefect_assay.runs.parameters import check_parameters
from prefect_assay.runs.suspend import can_suspend, outlive
from prefect_assay.runs.tags import own_label, set_labels
from prefect_assay.runs.transient_failures import is_away

P = ParamSpec("P")
R = TypeVar("R")

# What a site may set for all flows and these must not follow: a retry would ask a rejected question again.
PINNED: Final[dict[str, Any]] = {"retries": 0, "retry_delay_seconds": 0}


class PrefectAway(BaseException):  # any `Exception` would fail the run
    """The Prefect API did not answer a deployed run."""


class DurableFlow(Flow[P, R]):
    """A flow whose runs wait for days."""

    def __init__(self, fn: Callable[P, R], **options: Any) -> None:
        """As `prefect.flow`. What a site sets for all flows does not apply to the options in `PINNED`."""
        super().__init__(fn, **{**PINNED, **options})

    def start(self, *args: P.args, **kwargs: P.kwargs) -> FlowRun:
        """Start the flow's deployment with these parameters, and return its run at once; blocks go by reference.

        It blocks for some requests to Prefect: in async code, call it in a thread. Parameters that the deployment has
        defaults for may be left out.

        Raises:
            ConfigurationError: the flow is not deployed, a block is not saved, or Prefect refuses a parameter.
        """
        given = inspect.signature(self.fn).bind_partial(*args, **kwargs).arguments
        return start_run(deployment_of(self.name), given)

    def with_options(self, **options: Any) -> Self:  # Prefect checks them
        """Return a copy with these options of `prefect.flow`, durable as this one; Prefect's own makes a plain `Flow`."""
        plain = super().with_options(**options)
        durable = copy.copy(self)
        vars(durable).update(vars(plain))
        return durable

    def serialize_parameters(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters as Prefect stores them with the run.

        Raises:
            InputError: they hold what Prefect's database does not keep, or are too large.
        """
        stored = super().serialize_parameters(parameters)
        check_parameters(stored)
        return stored

    def validate_parameters(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters, cast to their types.

        Raises:
            ConfigurationError: a newer version has stored one that this version does not know.
            ParameterTypeError: one is not valid.
            PrefectAway: a block among them cannot be read now.
        """
        if unknown := parameters.keys() - inspect.signature(self.fn).parameters.keys():
            raise ConfigurationError(
                f"this version of prefect-assay does not know {', '.join(sorted(unknown))} among the run's parameters: a newer "
                "version has started the run. Nothing is lost: upgrade prefect-assay where the worker runs, and start it again"
            )
        with short_messages(), _crashing_without_prefect():
            return self._validated(parameters)

    def _validated(self, parameters: dict[str, Any]) -> dict[str, Any]:
        self.gone: dict[str, Unusable] = {}
        try:
            return super().validate_parameters(parameters)
        except (ParameterTypeError, UnknownBlockType) as error:
            if isinstance(error, ParameterTypeError) and not isinstance(error.__cause__, UNUSABLE):
                raise
            self.gone = {
                name: lost for name, ref in references(parameters).items() if (lost := unusable(ref))
            }
            if not self.gone:
                raise
        return super().validate_parameters(parameters | {name: placeholder(self, name) for name in self.gone})


def durable_flow(
    *, asks_for: tuple[str, ...] = (), **options: Any
) -> Callable[[Callable[P, R]], DurableFlow[P, R]]:
    """`prefect.flow`, for flows that wait for days; takes the same options.

    The blocks of the parameters in `asks_for` may be missing: the steps that need them call `require_blocks`.
    """

    def decorated(function: Callable[P, R]) -> DurableFlow[P, R]:
        @functools.wraps(function)
        def outliving(*args: P.args, **kwargs: P.kwargs) -> R:
            with short_messages(), _crashing_without_prefect(), _recording_events():
                arguments = inspect.signature(function).bind(*args, **kwargs).arguments
                given = _with_saved_blocks(arguments, asks_for)
                try:
                    return function(**given)  # type: ignore[call-arg] # it is bound
                except Exception as error:
                    outlive(error)
                    raise

        return DurableFlow(outliving, **options)

    return decorated


def _with_saved_blocks(arguments: dict[str, Any], asks_for: tuple[str, ...]) -> dict[str, Any]:
    context = FlowRunContext.get()
    if context is None or context.flow_run is None or not can_suspend():
        return arguments
    gone = getattr(context.flow, "gone", {})
    return with_saved_blocks(context.flow_run, arguments, gone, required_later=asks_for)


@contextmanager
def _recording_events() -> Iterator[None]:
    """Send the event of each fact once per run, however often the run starts again."""
    context = FlowRunContext.get()
    run = context.flow_run if context else None
    if run is None:
        yield
        return
    with recording(
        own_label(EVENTS_LABEL),
        began=run.created,
        keep=lambda sent: set_labels(run.id, {EVENTS_LABEL: sent}),
    ):
        yield


# Only Prefect's client raises these errors here: the clients of the service and of stores raise `AssayError`.
@contextmanager
def _crashing_without_prefect() -> Iterator[None]:
    try:
        yield
    except (httpx.HTTPError, ConcurrencySlotAcquisitionError) as error:
        cause = error.__cause__ if isinstance(error, ConcurrencySlotAcquisitionError) else error
        if not is_away(cause) or not _is_rescheduled():
            raise
        raise PrefectAway(
            f"the Prefect API gave no answer to go on with ({type(cause).__name__}). Nothing is lost: the run is "
            "rescheduled and first reads the present state"
        ) from error


def _is_rescheduled() -> bool:
    # Parameters are validated before the run has a context, in the process that was started for it.
    return can_suspend() if FlowRunContext.get() else flow_run.id is not None
