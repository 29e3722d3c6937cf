"""The base models, all frozen: data flows one way, and each stage creates a new value.

`Model` is for values of this package, `WireModel` for answers of the service, `StoredModel` for what a later version
may read.
"""

from datetime import UTC, datetime
from typing import Annotated, Any, Generic, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

T = TypeVar("T")


def _or_none(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    try:
        return handler(value)
    except ValidationError:
        return None


def _in_utc(value: datetime) -> datetime:
    return value if value.tzinfo else value.replace(tzinfo=UTC)


# A time of the service, UTC also where it does not say so (contract 1): one without an offset compares with no other.
Moment = Annotated[datetime, AfterValidator(_in_utc)]

# For fields that no decision uses: an unknown spelling gives None instead of failing the whole answer.
Maybe = Annotated[T | None, WrapValidator(_or_none)]


class Model(BaseModel):
    """A value of this package; unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class StoredModel(BaseModel):
    """A value kept for a later execution; fields that a newer version added are left out."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class WireModel(BaseModel):
    """An answer of the service; unknown fields are kept."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)


class Page(WireModel, Generic[T]):
    """`total` counts matches across all pages, `count` the items here, `offset` is echoed.

    `next_cursor` is set where a service of the earlier variant (contract 9.4) has a further page; such a service has
    neither offsets nor totals, and `total` is the number of items here.
    """

    items: tuple[T, ...]
    total: int
    count: int
    offset: int
    next_cursor: str | None = None
