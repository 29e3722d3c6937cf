"""Targets: the catalog of antigens (contract 2.11)."""

from typing import Any

from prefect_assay.models.base import WireModel


class Target(WireModel):
    """A catalog target. With `pricing` it has a self-service price: instant estimate, automated checkout."""

    id: str
    name: str | None = None
    vendor_name: str | None = None
    catalog_number: str | None = None
    url: str | None = None
    uniprot_id: str | None = None
    pricing: dict[str, Any] | None = None
    details: dict[str, Any] | None = None
