"""The base models: `Model` for what this package makes, `WireModel` for what the service sends.

`StoredModel` is for what is read again after days and an upgrade. All models are frozen: data flows one way, and a stage makes a new value instead of changing an old one.
"""

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

T = TypeVar("T")


def _or_none(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    try:
        return handler(value)
    except ValidationError:
        return None


# A field nobody decides by: a spelling that is not known leaves it empty instead of failing the whole answer.
Maybe = Annotated[T | None, WrapValidator(_or_none)]


class Model(BaseModel):
    """A value this package makes: frozen, and strict about its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class StoredModel(BaseModel):
    """A value this package keeps for a later execution: frozen; fields that a newer version added are left out."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class WireModel(BaseModel):
    """A value read from the service: frozen, unknown fields kept, absent optional fields tolerated."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)
