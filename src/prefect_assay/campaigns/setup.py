"""What a campaign is played with: its blocks, its options, and the terms that follow from both."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final

from prefect.blocks.core import Block

from prefect_assay.blocks import (
    Archive,
    AssayCredentials,
    SharedPaymentTokens,
    SpendingPolicy,
    Wallet,
    WebhookEndpoint,
    X402Wallet,
)
from prefect_assay.blocks.order_books import open_books
from prefect_assay.books import Books
from prefect_assay.books.campaign_log import CampaignLog, StartedKind, Terms
from prefect_assay.client.http.dates import time_at
from prefect_assay.models.vocabulary import MACHINE_RAILS, PaymentMethod
from prefect_assay.payments.interfaces import address
from prefect_assay.payments.rails.x402 import address_of

BLOCK_PARAMETERS: Final = ("credentials", "policy", "archive", "webhook", "wallet")
BLOCK_KEY: Final = "$block"  # in recorded parameters: the name of a saved block, as `type/name`


@dataclass(frozen=True)
class CampaignSetup:
    """The blocks and options that the flows share. Amounts are US cents without VAT."""

    credentials: AssayCredentials
    policy: SpendingPolicy
    archive: Archive
    payment_method: PaymentMethod
    wallet: Wallet | None
    webhook: WebhookEndpoint | None
    request_quote: bool
    deadline_days: int
    poll_seconds: float

    @cached_property
    def books(self) -> Books:
        """The ledgers of the organisation behind the token, opened on first use."""
        return open_books(self.credentials, self.archive)

    @property
    def patience(self) -> timedelta:
        """From an order to its deadline."""
        return timedelta(days=self.deadline_days)

    @property
    def how_paid(self) -> str:
        """How the orders are paid, for people."""
        if self.payment_method in MACHINE_RAILS:
            return f"by machine ({self.payment_method})"
        return "by a person, at the invoice's page"

    def read_service_time(self) -> datetime:
        """The service's clock, by an answer of now; raises if it does not answer."""
        with self.credentials.get_client() as client:
            client.targets(limit=1)
            return time_at(client)

    def log(self, campaign_id: str) -> CampaignLog:
        """The log of a campaign in the archive."""
        return CampaignLog(self.archive.get_store(), self.archive.prefix, campaign_id)

    def loop_log(self, loop_id: str) -> CampaignLog:
        """The log of a loop in the archive."""
        return CampaignLog(self.archive.get_store(), self.archive.prefix, loop_id, StartedKind.LOOP)

    def terms(self, limit_cents: int | None = None) -> Terms:
        """The terms under which a campaign is started now; `limit_cents` is a lower cap of the whole campaign."""
        policy = self.policy
        is_simulated = self.books.is_simulated
        if is_simulated is None:
            with self.credentials.get_client() as client:
                client.targets(limit=1)  # raises if the service does not answer
                is_simulated = client.is_simulated
        pays = self.payment_method in MACHINE_RAILS
        return Terms(
            service=address(self.credentials.base_url),
            organisation=self.books.account,
            simulated=is_simulated,
            archive_id=self.books.archive_id,
            payment_method=self.payment_method,
            wallet=identify_wallet(self.wallet) if pays else None,
            payees=self._payees() if pays else (),
            per_experiment_cents=policy.per_experiment_cents,
            per_campaign_cents=lower(policy.per_campaign_cents, limit_cents),
            rolling_cents=policy.rolling_cents,
            accept_quotes=policy.accept_quotes,
            deadline_days=self.deadline_days,
        )

    def _payees(self) -> tuple[str, ...]:
        """Who may be paid by machine."""
        match self.wallet:
            case X402Wallet():
                return tuple(sorted({one.lower() for one in self.wallet.pay_to}))
            case SharedPaymentTokens():
                return tuple(sorted(set(self.policy.network_ids)))
            case None:
                return ()

    def under(self, terms: Terms) -> "CampaignSetup":
        """The present blocks, with no cap above the recorded one and with the recorded payment method."""
        policy = self.policy
        rolling = [one for one in (terms.rolling_cents, policy.rolling_cents) if one is not None]
        caps: dict[str, Any] = {
            "per_experiment_cents": min(terms.per_experiment_cents, policy.per_experiment_cents),
            "per_campaign_cents": min(terms.per_campaign_cents, policy.per_campaign_cents),
            "rolling_cents": min(rolling, default=None),
            "accept_quotes": terms.accept_quotes and policy.accept_quotes,
        }
        return replace(
            self,
            policy=policy.model_copy(update=caps),
            payment_method=terms.payment_method,
            deadline_days=terms.deadline_days,
        )


def lower(cap_cents: int, limit_cents: int | None) -> int:
    """The lower of a cap and a limit, if there is one."""
    return cap_cents if limit_cents is None else min(cap_cents, limit_cents)


def identify_wallet(wallet: Wallet | None) -> str | None:
    """What tells one means of payment from another; never a secret."""
    match wallet:
        case X402Wallet():
            return address_of(wallet.private_key).lower()
        case SharedPaymentTokens():
            return wallet.issuer_url
        case None:
            return None


def recorded_parameters(parameters: Mapping[str, Any], setup: CampaignSetup) -> dict[str, Any]:
    """The parameters of this run as the log keeps them: each block by its name, which outlives its id."""
    recorded = {name: value for name, value in parameters.items() if name not in BLOCK_PARAMETERS}
    for name in BLOCK_PARAMETERS:
        block = getattr(setup, name)
        if block is not None and (saved := block_name(block)) is not None:
            recorded[name] = {BLOCK_KEY: saved}
    return recorded


def block_name(block: Block) -> str | None:
    """`type/name` of a saved block; None for one that is not saved."""
    name = block._block_document_name  # noqa: SLF001 - Prefect has no public name for it
    return f"{block.get_block_type_slug()}/{name}" if name else None
