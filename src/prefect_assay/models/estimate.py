"""Cost estimates (contract 2.5). Money is integer US cents, excluding VAT."""

from typing import Any

from prefect_assay.models.base import WireModel
from prefect_assay.models.billing import Cents


class AssayCost(WireModel):
    """The assay part. Two published field sets exist; both are read."""

    name: str | None = None
    base_cents: Cents | None = None
    replicate_addon_cents: Cents | None = None
    subtotal_cents: Cents


class MaterialsCost(WireModel):
    """The materials part; absent for assays without a target."""

    target: dict[str, Any] | None = None
    price_per_sequence_cents: Cents | None = None
    subtotal_cents: Cents


class Breakdown(WireModel):
    """A complete estimate."""

    pricing_version: str
    assay: AssayCost
    materials: MaterialsCost | None = None
    total_cents: Cents


class MaterialsUnavailable(WireModel):
    """Why there is no price: the target has no self-service pricing."""

    target: dict[str, Any] | None = None
    reason: str


class Incomplete(WireModel):
    """An estimate without a price for the materials. Never a price (contract 2.5)."""

    pricing_version: str
    assay: AssayCost
    materials_unavailable: MaterialsUnavailable


class CostEstimate(WireModel):
    """Either `breakdown` or `incomplete` is set."""

    breakdown: Breakdown | None = None
    incomplete: Incomplete | None = None
    warnings: tuple[Any, ...] = ()

    @property
    def total_cents(self) -> int | None:
        """The price in US cents, or None when the estimate is incomplete: a person has to quote."""
        return self.breakdown.total_cents if self.breakdown else None
