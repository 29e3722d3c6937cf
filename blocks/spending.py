"""`SpendingPolicy`: what may be spent without approval. Amounts are in USD with at most two decimals, excluding VAT."""

from typing import Self

from prefect.blocks.core import Block
from pydantic import Field, model_validator

from prefect_assay.blocks.base import DOCUMENTATION, StrictFields, link_logo
from prefect_assay.designs.options import Usd, usd_to_cents


class SpendingPolicy(StrictFields, Block):
    """Caps for orders and payments. Over a cap, the run waits for your approval before it orders.

    Example:
        ```python
        from prefect_assay.blocks import SpendingPolicy

        SpendingPolicy(per_experiment_usd=5_000, per_campaign_usd=20_000).save("BLOCK_NAME")
        policy = SpendingPolicy.load("BLOCK_NAME")
        ```
    """

    _block_type_name = "Assay Spending Policy"
    _block_type_slug = "assay-spending-policy"
    _description = "Caps for what assay runs may order and pay without asking."
    _documentation_url = DOCUMENTATION
    _logo_url = link_logo("process")

    per_experiment_usd: Usd = Field(
        title="Cap per experiment (USD)",
        description="An experiment that costs more asks for approval.",
    )
    per_campaign_usd: Usd = Field(
        title="Cap per campaign (USD)",
        description="A campaign whose experiments cost more in total asks for approval, once for all.",
    )
    rolling_usd: Usd | None = Field(
        default=None,
        title="Rolling cap for machine payments (USD)",
        description="A machine payment that takes the sum of the last days above this asks for approval. Needed to allow machine payments.",
    )
    rolling_days: int = Field(
        default=30, ge=1, le=366, title="Rolling window (days)", description="Length of the rolling window."
    )
    machine_payments: bool = Field(
        default=False,
        title="Allow machine payments",
        description="Off by default: with it off, no wallet is ever used and invoices are paid by a person.",
    )
    accept_quotes: bool = Field(
        default=False,
        title="Accept quotes within the caps",
        description="Off by default: every quote waits for a person's approval, even within the caps.",
    )
    ask_before_reordering: bool = Field(
        default=False,
        title="Ask before an order is sent again",
        description="Off by default: an order by quote whose response was lost, and that the service does not list, is sent "
        "again; at most one of the two is accepted and paid. A person is always asked about a self-service order. "
        "On: you are asked in both cases.",
    )
    answer_ceiling_usd: Usd = Field(
        default=100_000,
        title="Ceiling for answers (USD)",
        description="No answer to a question approves more than this, whoever answers.",
    )
    second_person_above_usd: Usd | None = Field(
        default=None,
        title="Two persons above (USD)",
        description="A campaign or an experiment that costs more needs the answer of another person than the one who asks "
        "for it. Empty: one person is enough.",
    )
    approval_hours: float = Field(
        default=72,
        gt=0,
        le=24 * 60,
        title="Time for an approval (hours)",
        description="How long a question stays open. A price that is not approved by then ends the campaign, with nothing ordered.",
    )
    reject_quote_on_cancel: bool = Field(
        default=True,
        title="Reject an open quote when its run is canceled",
        description="An open quote costs nothing, but somebody could still accept it. Off: it is left to them.",
    )

    @property
    def per_experiment_cents(self) -> int:
        """The cap per experiment in US cents."""
        return usd_to_cents(self.per_experiment_usd)

    @property
    def per_campaign_cents(self) -> int:
        """The cap per campaign in US cents."""
        return usd_to_cents(self.per_campaign_usd)

    @property
    def rolling_cents(self) -> int | None:
        """The rolling cap in US cents; None: not set."""
        return usd_to_cents(self.rolling_usd)

    @property
    def answer_ceiling_cents(self) -> int:
        """The ceiling for answers in US cents."""
        return usd_to_cents(self.answer_ceiling_usd)

    @property
    def second_person_above_cents(self) -> int | None:
        """Above how many US cents two persons are needed; None: never."""
        return usd_to_cents(self.second_person_above_usd)

    @property
    def unasked_limit_cents(self) -> int:
        """The most that a campaign may cost without a question to a person."""
        return min(
            cents for cents in (self.per_campaign_cents, self.second_person_above_cents) if cents is not None
        )

    @model_validator(mode="after")
    def _machine_payments_need_a_rolling_cap(self) -> Self:
        if self.machine_payments and self.rolling_usd is None:
            raise ValueError("machine_payments needs rolling_usd: set the sum that a month may cost at most")
        return self
