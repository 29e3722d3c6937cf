"""Results as the service sends them (contract 2.10 and 4.2). Unknown variants are kept losslessly.

Units: K_D in M, k_on in 1/(M s), k_off in 1/s, concentrations in nM, melting temperature in degrees Celsius.
Null is not zero; `none`, `unknown` and "no expression" are three different outcomes.
"""

from datetime import datetime
from typing import Any

from pydantic import Field

from prefect_assay.models.base import WireModel


class ResultSummary(WireModel):
    """A row of GET /results (contract 2.10)."""

    id: str
    experiment_id: str | None = None
    result_type: str
    title: str | None = None
    created_at: datetime | None = None
    size_bytes: int | None = None


class Replicate(WireModel):
    """One measured replicate of an affinity or screening result."""

    replicate: int | None = None
    kd: float | None = None
    kon: float | None = None
    koff: float | None = None
    binding: str | None = None
    expression: str | None = None
    fit_quality: str | None = None


class ResultEntry(WireModel):
    """One entry of `summary`. Fields that are not named here stay available in `model_extra`."""

    result_type: str | None = None
    sequence: dict[str, Any] | str | None = None
    sequence_name: str | None = None
    kd_mean: float | None = None
    kd_log_std: float | None = None
    kon_mean: float | None = None
    koff_mean: float | None = None
    binding: str | None = None
    binding_strength: str | None = None
    expression: str | None = None
    fit_quality: str | None = None
    tm: float | None = None
    replicates: tuple[Replicate, ...] = ()

    @property
    def name(self) -> str | None:
        """The design's name, wherever this variant carries it."""
        if self.sequence_name:
            return self.sequence_name
        return self.sequence.get("name") if isinstance(self.sequence, dict) else None

    @property
    def aa_string(self) -> str | None:
        """The design's residues, wherever this variant carries them."""
        return self.sequence.get("aa_string") if isinstance(self.sequence, dict) else self.sequence


class Result(ResultSummary):
    """A whole result of an experiment."""

    summary: tuple[ResultEntry, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)
    data_package_url: str | None = None
