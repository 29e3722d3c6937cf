"""Summary entries of thermal stability (service shapes, Results). Temperatures in degrees Celsius."""

from typing import Literal
from uuid import UUID

from prefect_assay.lab.shapes.base import Shape, absent
from prefect_assay.lab.shapes.readouts_base import Expression, Replicate, Source


class MeltingReplicate(Shape):
    """One melting curve; null where no transition is seen."""

    replicate: Replicate
    tm: float | None
    onset: float | None
    data_source: Source


class StabilityEntry(Shape):
    """Melting of one sequence."""

    result_type: Literal["thermostability"]
    sequence_id: UUID | None
    sequence: str | None = None
    sequence_name: str | None = None
    tm: float | None = None
    tm_std: float | None = None
    onset_pts_for_ratio: list[float]
    inflection_pts_for_ratio: list[float]
    initial_330nm: float | None = None
    bli_result_id: str | None = None
    expression: Expression = absent()
    data_source: Source = absent()
    state: Literal["in_progress"] = absent()
    replicates: list[MeltingReplicate]
