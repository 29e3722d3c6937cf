"""The base of all strict request bodies: unknown fields and wrong types are refused."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Body(BaseModel):
    """A request body: strict types, no unknown fields."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


def integral(value: Any) -> Any:
    """`3.0` is the integer 3 (JSON Schema)."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def documented(**schema: Any) -> Any:
    """A rule that only `openapi.json` shows; it is checked elsewhere."""
    return Field(json_schema_extra=schema)
