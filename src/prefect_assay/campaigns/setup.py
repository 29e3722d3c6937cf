"""What a campaign is played with: its blocks, its options, and the terms that follow from both."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final

from prefect_assay.blocks import (
    Archive,
    AssayAccount,
    AssayCredentials,
    SpendingPolicy,
    Wallet,
    WebhookEndpoint,
)
from prefect_assay.blocks.order_ledger import open_ledgers
from prefect_assay.campaigns.approval.terms import identify_account
from prefect_assay.designs.options import USUAL, CampaignOptions
from prefect_assay.orders.ledger import Ledgers
from prefect_assay.orders.ledger.campaign_log import CampaignLog, StartedKind, Terms
from prefect_assay.orders.payments.interfaces import normalize_address
from prefect_assay.service.client.http.dates import time_at
from prefect_assay.service.models.vocabulary import MACHINE_RAILS, PaymentMethod

BLOCK_KEY: Final = "$block"  # in recorded parameters: the name of a saved block, as `type/name`
ACCOUNT: Final = "account"  # the parameter with the account


@dataclass(frozen=True)
class CampaignSetup:
    """The account and the options that a campaign is played with. Amounts are US cents without VAT.

    `unasked_cents` is what the campaign may spend without asking, once its terms are recorded.
    """

    account: AssayAccount
    options: CampaignOptions = USUAL
    unasked_cents: int = 0

    @property
    def credentials(self) -> AssayCredentials:
        """The service's address and the token."""
        return self.account.credentials

    @property
    def policy(self) -> SpendingPolicy:
        """The caps, and who approves what."""
        return self.account.policy

    @property
    def archive(self) -> Archive:
        """Where results and ledgers are kept."""
        return self.account.archive

    @property
    def wallet(self) -> Wallet | None:
        """The means of payment of a machine rail."""
        return self.account.wallet

    @property
    def webhook(self) -> WebhookEndpoint | None:
        """Where the service delivers updates."""
        return self.account.webhook

    @property
    def payment_method(self) -> PaymentMethod:
        """The campaign's payment method, else the account's."""
        return self.options.spending.payment_method or self.account.payment_method

    @cached_property
    def ledgers(self) -> Ledgers:
        """The ledgers of the organization behind the token, opened on first use."""
        return open_ledgers(self.credentials, self.archive)

    @property
    def patience(self) -> timedelta:
        """From an order to its deadline."""
        return timedelta(days=self.options.waiting.deadline_days)

    @property
    def how_paid(self) -> str:
        """How the orders are paid, for people."""
        if self.payment_method in MACHINE_RAILS:
            return f"by machine ({self.payment_method})"
        return "by a person, at the invoice's page"

    def read_service_time(self) -> datetime:
        """The service's clock, by an answer of now; raises if it does not answer."""
        with self.credentials.get_client() as client:
            client.targets.list(limit=1)
            return time_at(client)

    def log(self, campaign_id: str) -> CampaignLog:
        """The log of a campaign in the archive."""
        return CampaignLog(self.archive.get_store(), self.archive.prefix, campaign_id)

    def loop_log(self, loop_id: str) -> CampaignLog:
        """The log of a loop in the archive."""
        return CampaignLog(self.archive.get_store(), self.archive.prefix, loop_id, StartedKind.LOOP)

    def terms(self, unasked_cents: int = 0) -> Terms:
        """The terms under which a campaign is started now; `unasked_cents` is what it may spend without asking."""
        policy = self.policy
        is_simulated = self.ledgers.is_simulated
        if is_simulated is None:
            with self.credentials.get_client() as client:
                client.targets.list(limit=1)  # raises if the service does not answer
                is_simulated = client.is_simulated
        wallet = self.wallet if self.payment_method is not PaymentMethod.ASYNC_INVOICE else None
        service = normalize_address(self.credentials.base_url)
        ledgers = self.ledgers
        identity = identify_account(
            self.account, service, ledgers.organisation, ledgers.organisation_name, is_simulated=is_simulated
        )
        return Terms(
            **asdict(identity),
            archive_id=ledgers.archive_id,
            payment_method=self.payment_method,
            wallet=wallet.get_identity() if wallet else None,
            payees=wallet.get_payees() if wallet else (),
            per_experiment_cents=policy.per_experiment_cents,
            per_campaign_cents=min(policy.unasked_limit_cents, unasked_cents),
            rolling_cents=policy.rolling_cents,
            accept_quotes=policy.accept_quotes,
            deadline_days=self.options.waiting.deadline_days,
        )

    def under(self, terms: Terms) -> "CampaignSetup":
        """The present blocks, with no cap above the recorded one and with the recorded payment method."""
        policy = self.policy
        rolling = [one for one in (terms.rolling_cents, policy.rolling_cents) if one is not None]
        caps: dict[str, Any] = {
            "per_experiment_usd": min(terms.per_experiment_cents, policy.per_experiment_cents) / 100,
            "rolling_usd": min(rolling) / 100 if rolling else None,
            "accept_quotes": terms.accept_quotes and policy.accept_quotes,
        }
        waiting = self.options.waiting.model_copy(update={"deadline_days": terms.deadline_days})
        return replace(
            self,
            account=self.account.model_copy(update={"policy": policy.model_copy(update=caps)}),
            options=self.options.model_copy(update={"waiting": waiting}),
            unasked_cents=min(terms.per_campaign_cents, policy.unasked_limit_cents),
        ).paying_by(terms.payment_method)

    def paying_by(self, method: PaymentMethod) -> "CampaignSetup":
        """The same with this payment method."""
        spending = self.options.spending.model_copy(update={"payment_method": method})
        return replace(self, options=self.options.model_copy(update={"spending": spending}))


def recorded_parameters(parameters: Mapping[str, Any], account: AssayAccount) -> dict[str, Any]:
    """The parameters of this run as the log keeps them: the account by its name, which outlives its id."""
    recorded = {name: value for name, value in parameters.items() if name != ACCOUNT}
    if account.name is not None:
        recorded[ACCOUNT] = {BLOCK_KEY: f"{account.get_block_type_slug()}/{account.name}"}
    return recorded
