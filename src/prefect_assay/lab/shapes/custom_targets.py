"""What the calls for custom targets answer (service shapes, Targets)."""

from typing import Literal
from uuid import UUID

from prefect_assay.lab.shapes.base import Moment, Page, Shape, Url


class CustomTarget(Shape):
    """A request for a target that the catalog does not have."""

    id: UUID
    name: str
    product_id: str
    sequence: str | None
    pdb_id: str | None
    vendor: str | None
    note: str | None
    product_url: Url | None
    molecular_weight: float | str | None
    status: Literal["pending_review", "approved", "rejected"]
    reason: str | None
    """What staff wrote with their decision."""
    target_id: UUID | None
    """The catalog target that an approved request became."""
    created_at: Moment
    updated_at: Moment


class CustomTargetPage(Page[CustomTarget]):
    """A page of requests for custom targets."""
