"""The fields that the run forms of the flows share, with their titles in words.

A form shows its fields in the order of the flow's signature. Prefect titles each with the parameter's name, unless the
schema of its type has a title.
"""

from typing import Annotated, Any, Final

from pydantic import Field

from prefect_assay.blocks import AssayAccount
from prefect_assay.designs import options
from prefect_assay.service.form import ShownAtOnce
from prefect_assay.service.models import spec


def title_field(words: str) -> Any:
    """The title of a field, in place of the parameter's name."""
    return Field(json_schema_extra={"title": words})


AT_ONCE: Final = ShownAtOnce()
Assay = Annotated[
    spec.Assay, title_field("What to measure")
]  # pydantic drops a title that is the model's own
Account = Annotated[AssayAccount, title_field("Account")]
MoreOptions = Annotated[options.CampaignOptions, title_field("More options")]
