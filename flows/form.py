"""The fields that the run forms of the flows share, with their titles in words.

A form shows its fields in the order of the flow's signature. Prefect titles each with the parameter's name, unless the
schema of its type has a title.
"""

from typing import Annotated, Any

from pydantic import Field

from prefect_assay import blocks
from prefect_assay.models import bounds, spec, vocabulary


def titled(words: str) -> Any:
    """The title of a field, in place of the parameter's name."""
    return Field(json_schema_extra={"title": words})


Assay = Annotated[spec.Assay, titled("What to measure")]  # pydantic drops a title that is the model's own
Credentials = Annotated[blocks.AssayCredentials, titled("Account at the laboratory")]
Policy = Annotated[blocks.SpendingPolicy, titled("Spending policy")]
Archive = Annotated[blocks.Archive, titled("Archive")]
Webhook = Annotated[blocks.WebhookEndpoint | None, titled("Webhook")]
Payment = Annotated[vocabulary.PaymentMethod, titled("Payment")]
Wallet = Annotated[blocks.Wallet | None, titled("Wallet")]
ByQuote = Annotated[bool, titled("Order by quote")]
LowerCap = Annotated[bounds.Cents | None, titled("Lower cap (US cents)")]
NameColumn = Annotated[bounds.Line | None, titled("Column of names")]
SequenceColumn = Annotated[bounds.Line | None, titled("Column of sequences")]
Chain = Annotated[bounds.Line | None, titled("Chain")]
TargetSequence = Annotated[bounds.Residues | None, titled("Residues of the antigen")]
KeepNative = Annotated[bool, titled("Measure native inputs, too")]
KeepShared = Annotated[bool, titled("Order what is in doubt")]
AsProtein = Annotated[bool, titled("Read as protein")]
PerExperiment = Annotated[int, Field(ge=1, le=384), titled("Designs per experiment")]
Deadline = Annotated[bounds.DeadlineDays, titled("Deadline (days)")]
Poll = Annotated[bounds.PollSeconds, titled("Pause between polls (seconds)")]
