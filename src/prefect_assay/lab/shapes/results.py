"""Results: the record, and one summary entry per sequence in the form of its assay (service shapes, Results)."""

from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from prefect_assay.lab.shapes.base import Count, Moment, Page, Shape, Url
from prefect_assay.lab.shapes.readouts import ActivityEntry, BinningEntry, ExpressionEntry, FluorescenceEntry
from prefect_assay.lab.shapes.readouts_binding import AffinityEntry, ScreeningEntry
from prefect_assay.lab.shapes.readouts_melting import StabilityEntry
from prefect_assay.models.vocabulary import ExperimentType

SummaryEntry = Annotated[
    AffinityEntry
    | ScreeningEntry
    | StabilityEntry
    | FluorescenceEntry
    | ExpressionEntry
    | BinningEntry
    | ActivityEntry,
    Field(discriminator="result_type"),
]


class ResultItem(Shape):
    """A result in the organisation's list (contract 2.10)."""

    id: UUID
    experiment_id: UUID
    result_type: ExperimentType
    title: str
    created_at: Moment
    size_bytes: Count


class ResultItemPage(Page[ResultItem]):
    """A page of results."""


class Result(Shape):
    """A result. A preliminary one keeps its id when the complete one replaces it."""

    id: UUID
    title: str
    experiment_id: UUID
    result_type: ExperimentType
    created_at: Moment
    summary: list[SummaryEntry] = Field(description="One entry per sequence.")
    metadata: dict[str, Any]
    data_package_url: Url | None = Field(default=None, description="A zip of tables and raw curves.")


class ResultPage(Page[Result]):
    """A page of whole results."""
