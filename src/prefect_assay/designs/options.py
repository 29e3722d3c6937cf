"""The options of a campaign: how its designs are read, how long it waits, and how it is paid for.

Flow parameters, the forms of the Prefect UI, the options of the commands and the rounds of a loop are made from these
models and from `Assay`. An option is added here once.
"""

import math
from typing import Annotated, Any, Final, overload

from pydantic import AfterValidator, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from prefect_assay.designs.selection import SelectionSettings
from prefect_assay.service.bounds import (
    CENTS_MAX,
    Count,
    DeadlineDays,
    Line,
    Number,
    PollSeconds,
    Positive,
    Residues,
)
from prefect_assay.service.form import form_of
from prefect_assay.service.models.base import Model
from prefect_assay.service.models.vocabulary import PaymentMethod

DEADLINE_DAYS: Final = 45
DESIGNS_PER_EXPERIMENT: Final = 96
SETTLE_SECONDS: Final = 30.0
_CENTS: Final = 100
_LAST_BITS: Final = 1e-14  # relative; a tenth of a cent of CENTS_MAX is ten times as much


@overload
def usd_to_cents(amount_usd: float) -> int: ...
@overload
def usd_to_cents(amount_usd: float | None) -> int | None: ...
def usd_to_cents(amount_usd: float | None) -> int | None:
    """Convert an amount of at most two decimals to whole cents; None stays None."""
    return None if amount_usd is None else round(amount_usd * _CENTS)


def _round_to_cents(amount_usd: float) -> float:
    """The number that is closest to the amount's cents: a sum such as 0.1 + 0.2 may be off by its last bits."""
    whole = usd_to_cents(amount_usd) / _CENTS
    if not math.isclose(amount_usd, whole, rel_tol=_LAST_BITS):
        raise ValueError("an amount in USD has at most two decimals")
    return whole


Usd = Annotated[float, Field(ge=0, le=CENTS_MAX / _CENTS), AfterValidator(_round_to_cents)]


class _Options(Model):
    """Options with defaults; what is left empty is in no run's parameters and in no form's defaults."""

    @model_serializer(mode="wrap")
    def _without_empty(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value is not None}


class ReadingOptions(_Options):
    """How a file of designs is read, and how it is split into experiments."""

    model_config = ConfigDict(title="Reading", json_schema_extra=form_of())

    name_column: Line | None = Field(
        default=None,
        title="Column of names",
        description="Title of the table's column of names. Empty: found by usual titles.",
    )
    sequence_column: Line | None = Field(
        default=None,
        title="Column of sequences",
        description="Title of the table's column of sequences; several titles with commas between them are chains. "
        "Empty: found by usual titles.",
    )
    chain: Line | None = Field(
        default=None,
        title="Chain",
        description="Order only this chain of each design: its number from 1, or its name in files of complexes; "
        "several as 1,2.",
    )
    target_sequence: Residues | None = Field(
        default=None,
        title="Residues of the target",
        description="Residues that must not be ordered, in addition to those of the catalog's target.",
    )
    keep_native: bool = Field(
        default=False,
        title="Keep native inputs",
        description="Also measure the native inputs in files of ProteinMPNN and LigandMPNN.",
    )
    as_is: bool = Field(
        default=False,
        title="Order as it is",
        description="Order doubtful sequences as they are, such as a chain that all designs share.",
    )
    as_protein: bool = Field(
        default=False,
        title="Read as protein",
        description="Take residues that look like nucleotides as amino acids.",
    )
    designs_name: Line | None = Field(
        default=None,
        title="Name of pasted designs",
        description="What pasted text is called in messages and artifacts, such as the file it came from.",
    )
    designs_per_experiment: int = Field(
        default=DESIGNS_PER_EXPERIMENT,
        ge=1,
        le=384,
        title="Designs per experiment",
        description="The most designs that one experiment takes.",
    )

    def list_other_designs(self, other: "ReadingOptions") -> list[str]:
        """The options that differ and give designs other names or residues; the rest is about checks and experiments."""
        names = ("name_column", "sequence_column", "chain", "as_protein", "keep_native")
        return [name for name in names if getattr(self, name) != getattr(other, name)]


AS_WRITTEN: Final = ReadingOptions()


class WaitingOptions(_Options):
    """How long a campaign waits for the laboratory."""

    model_config = ConfigDict(title="Patience", json_schema_extra=form_of())

    deadline_days: DeadlineDays = Field(
        default=DEADLINE_DAYS,
        title="Deadline (days)",
        description="How long to wait for an experiment, counted from its order. It is read daily afterwards.",
    )
    poll_seconds: PollSeconds = Field(
        default=300.0,
        title="Pause between polls (seconds)",
        description="The longest pause between two polls of a run without a deployment.",
    )


class SpendingOptions(_Options):
    """How a campaign is paid for."""

    model_config = ConfigDict(title="Payment", json_schema_extra=form_of())

    payment_method: PaymentMethod | None = Field(
        default=None,
        title="Payment method",
        description="async_invoice: a person pays the hosted invoices; a machine rail pays with the account's wallet. "
        "Empty: the account's.",
    )
    request_quote: bool = Field(
        default=False,
        title="Order by quote",
        description="Order by quote, even if the estimates are complete.",
    )
    requester: Line | None = Field(
        default=None,
        title="Your name",
        description="Who asks for this purchase; recorded with what is approved. Prefect's own user counts instead, where "
        "there is one. Empty: the machine's user in a command, else the account's owner.",
    )


class CampaignOptions(_Options):
    """Everything that a campaign usually leaves as it is."""

    model_config = ConfigDict(title="Options", json_schema_extra=form_of())

    reading: ReadingOptions = Field(default=ReadingOptions(), title="Reading the designs")
    waiting: WaitingOptions = Field(default=WaitingOptions(), title="Waiting")
    spending: SpendingOptions = Field(default=SpendingOptions(), title="Paying")


USUAL: Final = CampaignOptions()


class LoopOptions(_Options):
    """How the rounds of a loop are chosen, and when the loop stops."""

    model_config = ConfigDict(title="Loop", json_schema_extra=form_of())

    designs_per_round: int | None = Field(
        default=None,
        ge=1,
        le=10_000,
        title="Designs per round",
        description="The most designs that a round measures. Empty: all of a file; of a designer one experiment's.",
    )
    selection: SelectionSettings | None = Field(
        default=None,
        title="Selection",
        description="How the designs of a round are chosen from what was proposed. Empty: the first ones, in their order.",
    )
    max_rounds: int = Field(
        default=10, ge=1, le=1000, title="Most rounds", description="The most rounds of the loop."
    )
    goal_kd_nM: Positive | None = Field(  # noqa: N815 - nM is the unit
        default=None,
        title="Goal: K_D (nM)",
        description="Stop as soon as a round's best K_D is at or below this.",
    )
    goal_tm_C: Number | None = Field(  # noqa: N815 - as scientists spell it
        default=None,
        title="Goal: T_m (°C)",
        description="Stop as soon as a melting temperature is at or above this.",
    )
    goal_expression_nM: Positive | None = Field(  # noqa: N815
        default=None,
        title="Goal: expression (nM)",
        description="Stop as soon as a concentration is at or above this.",
    )
    stop_after_flat_rounds: Count | None = Field(
        default=None,
        title="Stop after rounds without improvement",
        description="Stop after this many rounds in a row without improvement.",
    )
    wait_days: float = Field(
        default=0,
        ge=0,
        le=365,
        title="Wait for the next file (days)",
        description="Without a designer: how long to wait for the next file. 0: end when every file has been measured.",
    )
    settle_seconds: float = Field(
        default=SETTLE_SECONDS,
        ge=0,
        le=3600,
        title="A file is complete after (seconds)",
        description="A file of a folder is complete when it has not changed for so long.",
    )


USUAL_ROUNDS: Final = LoopOptions()
