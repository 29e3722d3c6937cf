"""Targets of the catalog (contract 2.11), and requests for other ones (service-shapes, Targets)."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from prefect_assay.models.base import Maybe, WireModel
from prefect_assay.models.vocabulary import KnownOrText


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


class CustomTargetStatus(StrEnum):
    """The state of a request."""

    PENDING_REVIEW = "pending_review"
    APPROVED = "approved"
    REJECTED = "rejected"


class CustomTarget(WireModel):
    """A request for a target that the catalog lacks. An approved one may name its catalog target."""

    id: str
    name: Maybe[str] = None
    product_id: Maybe[str] = None
    sequence: Maybe[str] = None
    pdb_id: Maybe[str] = None
    vendor: Maybe[str] = None
    note: Maybe[str] = None
    product_url: Maybe[str] = None
    molecular_weight: Maybe[float | str] = None
    status: KnownOrText[CustomTargetStatus] | None = None
    reason: Maybe[str] = None
    target_id: Maybe[str] = None
    created_at: Maybe[datetime] = None
    updated_at: Maybe[datetime] = None
