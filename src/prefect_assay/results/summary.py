"""One row per design of a campaign: its measured values, intervals, verdict and price. Knows no file format."""

from pydantic import Field

from prefect_assay.models.base import StoredModel
from prefect_assay.results.kinetics.analysis import Verdict
from prefect_assay.results.row import Outcome


class DesignSummary(StoredModel):
    """One design. Units as in `ResultRow`; the interval is the 95 % interval of K_D; the price is without VAT.

    `attributes` are the designer's own columns (method, ipTM, round, ...), as they were in the input file.
    """

    name: str
    experiment_code: str
    result_type: str = ""
    target: str | None = None
    control: bool | None = None
    outcome: Outcome
    qualifier: str | None = None
    kd_M: float | None = None  # noqa: N815
    kd_low_M: float | None = None  # noqa: N815
    kd_high_M: float | None = None  # noqa: N815
    kon_per_M_s: float | None = None  # noqa: N815
    koff_per_s: float | None = None
    tm_C: float | None = None  # noqa: N815
    concentration_nM: float | None = None  # noqa: N815
    binding: str | None = None
    binding_strength: str | None = None
    expression: str | None = None
    replicates: int = 0
    verdict: Verdict | None = None
    reasons: tuple[str, ...] = ()
    price_cents: float | None = None
    aa_string: str | None = None
    attributes: dict[str, str] = Field(default_factory=dict)
