"""The plan of a campaign, archived at its first execution.

A campaign waits for days and starts from the top at every wake-up. Its designs file may have changed by then, so every
execution reads the archived plan.
"""

from prefect_assay.models.base import StoredModel
from prefect_assay.models.sequences import Duplicate
from prefect_assay.models.spec import Assay, ExperimentSpec

PLAN_SCHEMA = 1


class PlannedExperiment(StoredModel):
    """One experiment of a campaign. `batch_index` counts from 0."""

    order_key: str
    batch_index: int
    spec: ExperimentSpec


class Plan(StoredModel):
    """A campaign's experiments. The same designs and assay give the same plan."""

    plan_schema: int = PLAN_SCHEMA
    campaign_id: str
    archive_id: str | None = None  # the archive that holds the campaign's orders
    source: str
    assay: Assay
    target_name: str | None = None
    experiments: tuple[PlannedExperiment, ...]
    duplicates: tuple[Duplicate, ...] = ()

    @property
    def order_keys(self) -> tuple[str, ...]:
        """The order keys, in batch order."""
        return tuple(e.order_key for e in self.experiments)
