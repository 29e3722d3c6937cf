"""Requests for targets that the catalog does not have (service-shapes, Targets)."""

from datetime import datetime
from enum import StrEnum

from prefect_assay.models.base import Maybe, WireModel
from prefect_assay.models.vocabulary import KnownOrText


class CustomTargetStatus(StrEnum):
    """Where a request stands."""

    PENDING_REVIEW = "pending_review"
    APPROVED = "approved"
    REJECTED = "rejected"


class CustomTarget(WireModel):
    """A request for a target of one's own. An approved one may name the catalog target that it became."""

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
