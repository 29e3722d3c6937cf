"""Shapes of results, with one summary entry per sequence in the form of its assay (contract 2.10; service shapes).

K_D in M, k_on in 1/(M s), k_off in 1/s, degrees Celsius. Fluorescence, expression, binning and activity are the lab's.
"""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from assay_lab.api.shapes import Count, Moment, NamedTarget, Page, Shape, Url, absent
from assay_lab.vocabulary import ExperimentType, Method

BindingCall = Literal["true", "false", "unknown", "in_progress"]
Strength = Literal["strong", "medium", "weak", "none", "unknown"]
Expression = Literal["high", "medium", "low", "none"]
Source = Annotated[
    Literal["measured", "model", "measured+model", "landscape"],
    Field(
        description="Whether the numbers were measured, made up by the lab's model, or come from a landscape."
    ),
]
Replicate = Annotated[int, Field(ge=1)]


class MeasuredSequence(Shape):
    """The sequence that an entry is about."""

    name: str | None = None
    aa_string: str
    control: bool
    metadata: Any = None


class Interval(Shape):
    """A fitted value with its 95 % interval."""

    value: float
    ci_low: float | None = None
    ci_high: float | None = None


class _Replicate(Shape):
    replicate: Replicate
    data_source: Source


class BindingReplicate(_Replicate):
    """One replicate of a screen."""

    binding: BindingCall
    binding_strength: Strength
    expression: Expression


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
    binding: BindingCall
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


class MeltingReplicate(_Replicate):
    """One melting curve; null where no transition is seen."""

    tm: float | None
    onset: float | None


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


Activity = Literal["true", "false", "unknown"]
InProgress = Literal["in_progress"]
Positive = Annotated[float, Field(ge=0)]


class _Entry(Shape):
    sequence: MeasuredSequence
    state: InProgress = absent()
    data_source: Source = absent()


class FluorescenceReplicate(_Replicate):
    """One well."""

    intensity: Positive
    expression: Expression


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


class ExpressionReplicate(_Replicate):
    """One culture."""

    expression: Expression
    yield_mg_per_l: Positive
    purity_percent: Positive | None


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


class ActivityReplicate(_Replicate):
    """One assay: k_cat in 1/s, K_M in M."""

    expression: Expression
    active: Activity
    kcat: Positive | None
    km: Positive | None


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
