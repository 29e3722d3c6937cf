"""What the summary entries of several assays have in common (service shapes, Results)."""

from typing import Annotated, Any, Literal

from pydantic import Field

from prefect_assay.lab.shapes.base import Shape

Call = Literal["true", "false", "unknown", "in_progress"]
Strength = Literal["strong", "medium", "weak", "none", "unknown"]
Expression = Literal["high", "medium", "low", "none"]
Source = Annotated[
    Literal["measured", "model", "measured+model"],
    Field(description="Whether the numbers were measured, or made up by the lab's model."),
]
Replicate = Annotated[int, Field(ge=1)]


class MeasuredSequence(Shape):
    """The sequence that an entry is about."""

    name: str | None = None
    aa_string: str
    control: bool
    metadata: Any = None


class Interval(Shape):
    """A fitted value with its 95 % interval."""

    value: float
    ci_low: float | None = None
    ci_high: float | None = None
