"""Summary entries of the binding assays (service shapes, Results). K_D in M, k_on in 1/(M s), k_off in 1/s."""

from typing import Literal

from pydantic import Field

from prefect_assay.lab.shapes.base import NamedTarget, Shape, absent
from prefect_assay.lab.shapes.readouts_base import (
    Call,
    Expression,
    Interval,
    MeasuredSequence,
    Replicate,
    Source,
    Strength,
)
from prefect_assay.models.vocabulary import Method


class BindingReplicate(Shape):
    """One replicate of a screen."""

    replicate: Replicate
    binding: Call
    binding_strength: Strength
    expression: Expression
    data_source: Source


class KineticReplicate(BindingReplicate):
    """One replicate of an affinity measurement."""

    kd: float | None
    kon: float | None
    koff: float | None
    kon_method: Method | None
    koff_method: Method | None
    confidence: None = Field(description="Published without its scale.")
    fit_quality: Literal["good", "medium", "poor"] | None


class BindingEntry(Shape):
    """The call for one sequence. Entries that are in progress carry little else."""

    sequence: MeasuredSequence
    target: NamedTarget | None = None
    binding: Call
    binding_strength: Strength
    positive_control: bool
    method: list[Method] = absent()
    expression: Expression = absent()
    concentration_value: float | None = Field(default=None, description="nM")
    concentration_display: str | None = None
    data_source: Source = absent()


class ScreeningEntry(BindingEntry):
    """A yes or no, which is not an affinity."""

    result_type: Literal["screening"]
    replicates: list[BindingReplicate]


class AffinityEntry(BindingEntry):
    """Kinetics. `kd_mean` averages strong-binding replicates only."""

    result_type: Literal["affinity"]
    kd_units: Literal["M"] = absent()
    kd_mean: float | None = None
    kd_log_std: float | None = None
    kon_mean: float | None = None
    kon_log_std: float | None = None
    koff_mean: float | None = None
    koff_log_std: float | None = None
    kd_app: Interval | None = None
    kon_1to1: Interval | None = None
    koff_1to1: Interval | None = None
    binding_model: list[str] = absent()
    fit_quality: Literal["good", "medium", "poor"] | None = None
    rmse_max_signal_pct: float | None = Field(
        default=None, ge=0, description="Percent of the largest signal."
    )
    performance: dict[str, Literal["better", "worse"] | None] = absent("By the name of each control.")
    place: int | None = Field(default=None, ge=1, description="Rank; 1 binds tightest.")
    replicates: list[KineticReplicate]
