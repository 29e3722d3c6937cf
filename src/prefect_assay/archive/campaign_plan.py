"""A campaign's plan: its experiments, fixed once."""

from pydantic import Field

from prefect_assay.archive.formats import PLAN_FORMAT
from prefect_assay.service.models.base import StoredModel
from prefect_assay.service.models.sequences import Duplicate
from prefect_assay.service.models.spec import Assay, ExperimentSpec, SequenceValue


class PlannedExperiment(StoredModel):
    """One experiment of a campaign. `batch_index` counts from 0."""

    order_key: str
    batch_index: int
    spec: ExperimentSpec


class Plan(StoredModel):
    """A campaign's experiments. The same designs and assay give the same order keys.

    `attributes` are the designer's own columns: `{design name: {column title: value}}`. They play no part in orders.
    """

    plan_schema: int = PLAN_FORMAT
    campaign_id: str
    archive_id: str | None = None  # the archive that holds the campaign's orders
    source: str
    assay: Assay
    target_name: str | None = None
    experiments: tuple[PlannedExperiment, ...]
    duplicates: tuple[Duplicate, ...] = ()
    attributes: dict[str, dict[str, str]] = Field(default_factory=dict)
    attributes_left_out: tuple[str, ...] = ()  # titles of columns beyond the plan's size
    reading: tuple[str, ...] = ()  # how the designs were read, one line each
    doubts: tuple[
        str, ...
    ] = ()  # those of these lines that are about doubtful designs, which are ordered as they are

    @property
    def sequences(self) -> dict[str, SequenceValue]:
        """What is ordered under each name, which is unique in a campaign."""
        return {
            name: value
            for experiment in self.experiments
            for name, value in experiment.spec.sequences.items()
        }

    @property
    def order_keys(self) -> tuple[str, ...]:
        """The order keys, in batch order."""
        return tuple(e.order_key for e in self.experiments)
