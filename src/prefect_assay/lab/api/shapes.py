"""The base of all response shapes, and the error bodies (contract 2.12 and 7).

Shapes describe answers in `openapi.json`, and the tests hold answers to them; nothing is parsed with them.

A field without a default is always there. `x: T | None = None` may be null or absent; `x: T = absent()` may be
absent, and is never null.
"""

from typing import Annotated, Any, Generic, Literal, TypeVar
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


Kind = Literal[
    "customer_quote_cap",
    "rate_limited",
    "upstream_server_error",
    "missing_customer",
    "missing_product",
    "other",
]


class Error(Shape):
    """A refusal. Several validation findings arrive together, separated by semicolons."""

    error: Annotated[str, Field(min_length=1, description="What is wrong, for people.")]
    request_id: Annotated[str, Field(pattern="^req_", description="As in the header x-request-id.")]
    code: str = absent("Machine-readable, where there is one, such as payment_method_selector_conflict.")


class SubmitError(Error):
    """A submission that is not possible now (service shapes, Experiments)."""

    error_kind: Kind = absent("Why, for machines.")
    hint: str = absent("What to do about it.")


class OrderError(Error):
    """An order that failed; after its invoice was made it names what exists (contract 4.2, create rule 6)."""

    experiment_id: UUID = absent("The experiment that was created all the same.")
    provider_invoice_id: str = absent("Its invoice, which is void.")
    provider_hosted_invoice_url: Url = absent()
