"""The base models, all frozen: data flows one way, and each stage creates a new value.

`Model` is for values of this package, `WireModel` for answers of the service, `ExactModel` for terms of payment,
`StoredModel` for records that a later version may read.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Generic, Self, TypeVar

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)

from prefect_assay.foreign_text import clean_fields

T = TypeVar("T")

DECIDES: Final = (
    "decides"  # marks an optional field of an answer that a decision hangs on: an odd value is an error
)


_FIRST_YEAR: Final = 2000


def _in_utc(value: datetime) -> datetime:
    if value.year < _FIRST_YEAR:
        raise ValueError("no time: the zero of a clock")  # what some services write in place of null
    return value if value.tzinfo else value.replace(tzinfo=UTC)


# A time of the service, UTC also where it does not say so (contract 1): one without an offset compares with no other.
Moment = Annotated[datetime, AfterValidator(_in_utc)]


class Model(BaseModel):
    """A value of this package; unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class StoredModel(BaseModel):
    """A value kept for a later execution; fields that a newer version added are left out."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class WireModel(BaseModel):
    """An answer of the service; unknown fields are kept.

    A field with a default decides nothing, unless it is marked with `DECIDES`: an odd value is left out as if the field
    were absent, so that it fails neither an order that is placed nor a wait of days.
    """

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True, coerce_numbers_to_str=True)

    @model_validator(mode="wrap")
    @classmethod
    def _without_odd_values(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(data, Mapping):
            data = clean_fields(data)
        try:
            return handler(data)
        except ValidationError as error:
            if not isinstance(data, Mapping):
                raise
            odd = {
                detail["loc"][0]
                for detail in error.errors(include_url=False, include_context=False)
                if detail["loc"]
            }
            left_out = set[str]()
            for name, field in cls.model_fields.items():
                names = wire_names(name, field.validation_alias)
                nothing = all(data.get(one) is None for one in names)
                if odd & names and not field.is_required() and (nothing or DECIDES not in field.metadata):
                    left_out |= names
            if not left_out & data.keys():
                raise
            return handler({key: value for key, value in data.items() if key not in left_out})


def wire_names(name: str, alias: Any) -> set[str]:
    """The names that a field of an answer may have."""
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias] if alias else []
    return {name, *(one for one in choices if isinstance(one, str))}


class ExactModel(BaseModel):
    """The terms of a payment: unknown fields are kept, and every odd value is an error."""

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
