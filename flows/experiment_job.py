"""What the steps of one `experiment` run share."""

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

from prefect_assay.blocks import Archive, AssayCredentials, SpendingPolicy, Wallet, WebhookEndpoint
from prefect_assay.blocks.order_books import open_books
from prefect_assay.books import OrderBook
from prefect_assay.models.spec import ExperimentSpec
from prefect_assay.models.vocabulary import PaymentMethod
from prefect_assay.runs import PollPolicy


@dataclass(frozen=True)
class Job:
    """The parameters of one run, so that the steps below take one thing instead of ten."""

    spec: ExperimentSpec
    key: str
    name: str
    label: str
    campaign_id: str
    credentials: AssayCredentials
    policy: SpendingPolicy
    archive: Archive
    payment_method: PaymentMethod
    wallet: Wallet | None
    webhook: WebhookEndpoint | None
    cap_cents: int
    campaign_cap_cents: int
    request_quote: bool
    patience: timedelta
    poll: PollPolicy

    @cached_property
    def book(self) -> OrderBook:
        """The order's log, opened when it is first needed."""
        return open_books(self.credentials, self.archive).order(self.campaign_id, self.key)
