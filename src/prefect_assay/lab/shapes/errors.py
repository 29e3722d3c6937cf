"""Error bodies (contract 2.12 and 7)."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from prefect_assay.lab.shapes.base import Shape, Url, absent

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
