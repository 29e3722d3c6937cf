"""Catalog targets and the updates feed (contract 2.9 and 2.11)."""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from prefect_assay.lab.shapes.base import Cents, Moment, Page, Shape, Url, absent


class PerSequence(Shape):
    """A price for every sequence."""

    type: Literal["per_sequence"]
    price_per_sequence_cents: Cents


class Lot(Shape):
    """A lot that is opened as a whole."""

    num_sequences: int = Field(ge=1)
    price_usdcent: Cents


class PerLot(Shape):
    """A price for every lot that is opened."""

    type: Literal["per_broken_lot"]
    lot_prices: list[Lot]


class TargetDetails(Shape):
    """What is known about a target."""

    model_config = ConfigDict(extra="allow")

    description: str = absent()
    organism: str = absent()
    molecular_weight: Any = absent()
    purity: float = absent("Percent.")
    sequence: str = absent()


class Target(Shape):
    """An antigen of the catalog. Without `pricing` it has no self-service price."""

    id: UUID
    name: str
    vendor_name: str
    catalog_number: str
    url: Url
    uniprot_id: str | None = None
    pricing: Annotated[PerSequence | PerLot, Field(discriminator="type")] | None = None
    details: TargetDetails | None = None


class TargetPage(Page[Target]):
    """A page of targets."""


class Update(Shape):
    """Something that happened to an experiment (contract 2.9)."""

    id: str
    experiment_id: UUID
    experiment_code: str
    name: str
    timestamp: Moment
    type: Literal["status_change", "progress", "error"] = absent()


class UpdatePage(Page[Update]):
    """A page of updates."""
