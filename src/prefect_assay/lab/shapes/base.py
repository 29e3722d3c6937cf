"""What every response shape is built on.

A field without a default is always there. `x: T | None = None` may be null or absent; `x: T = absent()` may be
absent, and is never null.
"""

from typing import Annotated, Any, Generic, TypeVar
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

Item = TypeVar("Item")

Url = Annotated[str, Field(json_schema_extra={"format": "uri"})]
Cents = Annotated[int, Field(ge=0, description="US cents, excluding VAT.")]
Count = Annotated[int, Field(ge=0)]
Moment = AwareDatetime


class Shape(BaseModel):
    """An answer of the service, in neutral words."""

    model_config = ConfigDict(extra="forbid", defer_build=True)


class Page(Shape, Generic[Item]):
    """One page of a list (contract 4.1)."""

    items: list[Item]
    total: Count = Field(description="Matches across all pages.")
    count: Count = Field(description="Items in this answer.")
    offset: Count = Field(description="As asked for.")


def absent(description: str | None = None) -> Any:
    """A field that an answer may leave out, and never sets to null."""
    return Field(default=None, description=description)


class NamedTarget(Shape):
    """A target by its name and its id in the catalog."""

    name: str
    target_catalog_id: UUID
