"""Summary entries of the assays without a published shape: the lab's own (docs/lab-measurements.md)."""

from typing import Annotated, Literal

from pydantic import Field

from prefect_assay.lab.shapes.base import NamedTarget, Shape, absent
from prefect_assay.lab.shapes.readouts_base import Expression, MeasuredSequence, Replicate, Source

Activity = Literal["true", "false", "unknown"]
InProgress = Literal["in_progress"]
Positive = Annotated[float, Field(ge=0)]


class _Entry(Shape):
    sequence: MeasuredSequence
    state: InProgress = absent()
    data_source: Source = absent()


class FluorescenceReplicate(Shape):
    """One well."""

    replicate: Replicate
    intensity: Positive
    expression: Expression
    data_source: Source


class FluorescenceEntry(_Entry):
    """Intensity in relative units."""

    result_type: Literal["fluorescence"]
    intensity_mean: Positive | None = None
    intensity_std: Positive | None = None
    intensity_units: Literal["RFU"] = absent()
    background: Positive = absent()
    excitation_nm: int = absent()
    emission_nm: int = absent()
    expression: Expression = absent()
    replicates: list[FluorescenceReplicate]


class ExpressionReplicate(Shape):
    """One culture."""

    replicate: Replicate
    expression: Expression
    yield_mg_per_l: Positive
    purity_percent: Positive | None
    data_source: Source


class ExpressionEntry(_Entry):
    """Yield."""

    result_type: Literal["expression"]
    expression: Expression = absent()
    yield_mean: Positive = absent()
    yield_std: Positive | None = None
    yield_units: Literal["mg/L"] = absent()
    concentration_value: Positive | None = Field(default=None, description="nM")
    concentration_display: str = absent()
    molecular_weight_da: Positive = absent()
    replicates: list[ExpressionReplicate]


class ActivityReplicate(Shape):
    """One assay: k_cat in 1/s, K_M in M."""

    replicate: Replicate
    expression: Expression
    active: Activity
    kcat: Positive | None
    km: Positive | None
    data_source: Source


class ActivityEntry(_Entry):
    """Michaelis-Menten constants."""

    result_type: Literal["enzyme_activity"]
    active: Activity = absent()
    kcat_mean: Positive | None = None
    kcat_std: Positive | None = None
    kcat_units: Literal["1/s"] = absent()
    km_mean: Positive | None = None
    km_std: Positive | None = None
    km_units: Literal["M"] = absent()
    expression: Expression = absent()
    replicates: list[ActivityReplicate]


class BinningEntry(_Entry):
    """The bin of one sequence, and which others it blocks."""

    result_type: Literal["epitope_binning"]
    target: NamedTarget | None = None
    bin: str | None
    binding: Activity = absent()
    blocks: list[str] = absent()
    responses: dict[str, float | None] = Field(description="By the name of the second; 1 is unhindered.")
