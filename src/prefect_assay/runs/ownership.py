"""Which runs are ours, by what Prefect's server knows of them.

Other people's flows are called `experiment` or `campaign` as well, and a server may be shared with them.
"""

from typing import Final

from prefect.client.schemas.filters import FlowFilter, FlowFilterName
from prefect.client.schemas.objects import FlowRun

# The flows that wait, by their Prefect names; importing them here would go round.
FLOW_NAMES: Final = ("campaign", "design-build-test", "experiment")
OUR_FLOWS: Final = FlowFilter(name=FlowFilterName(any_=list(FLOW_NAMES)))
OUR_TAG: Final = "assay"  # of the runs of our deployments

_REQUIRED: Final = frozenset({"credentials", "policy", "archive"})  # parameters of each of them


def is_ours(run: FlowRun) -> bool:
    """Whether a run of a flow with one of these names is one of this package."""
    return run.parameters.keys() >= _REQUIRED
