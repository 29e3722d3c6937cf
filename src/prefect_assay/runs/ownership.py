"""Which runs of a Prefect server belong to this package. Other flows may be called `experiment` or `campaign`, too."""

from typing import Final

from prefect.client.schemas.filters import FlowFilter, FlowFilterName
from prefect.client.schemas.objects import FlowRun

# The flows that wait, by their Prefect names; importing them here would be circular.
FLOW_NAMES: Final = ("campaign", "design-build-test", "experiment")
ASSAY_FLOWS: Final = FlowFilter(name=FlowFilterName(any_=list(FLOW_NAMES)))
ASSAY_TAG: Final = "assay"  # on every run of this package's deployments

_REQUIRED: Final = frozenset({"credentials", "policy", "archive"})  # parameters of each of these flows


def is_assay_run(run: FlowRun) -> bool:
    """Return True if a run of a flow with one of these names belongs to a prefect-assay flow."""
    return run.parameters.keys() >= _REQUIRED
