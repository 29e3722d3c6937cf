"""Settings of one lab process. Knows neither HTTP nor storage.

Secrets are `repr=False` fields, so that no log line or traceback shows them.
"""

import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from prefect_assay.models.service import WireWords

ClockMode = Literal["manual", "scaled", "auto"]

API_PREFIX: Final = "/api/v1"

X402Fault = Literal[
    "wrong_amount", "wrong_pay_to", "wrong_asset", "wrong_network", "wrong_resource", "ten_year_window"
]


@dataclass(frozen=True, slots=True)
class MppSettings:
    """The terms of the mpp-spt rail.

    Attributes:
        network_id: the receiver's profile in the provider's network; the default is unassigned.
        valid_seconds: how long a challenge can be answered.
        secret: key of the challenges' ids.
    """

    method: str = "stripe"
    network_id: str = "profile_lab_1ab402"
    payment_method_types: tuple[str, ...] = ("card",)
    valid_seconds: int = 300
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)


@dataclass(frozen=True, slots=True)
class X402Settings:
    """The terms of the x402-exact rail.

    Attributes:
        network: CAIP-2 name of an EVM chain; the default is a test network.
        asset: address of the token contract; `asset_name` and `asset_version` are its EIP-712 domain.
        pay_to: the receiving address; the default is unassigned.
        max_timeout_seconds: how far ahead an authorisation may be valid.
        fault: a wrong term in the challenge, to test a client's guard.
    """

    network: str = "eip155:84532"
    asset: str = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
    pay_to: str = "0x00000000000000000000000000000000001ab402"
    asset_name: str = "USDC"
    asset_version: str = "2"
    max_timeout_seconds: int = 300
    fault: X402Fault | None = None

    @property
    def chain_id(self) -> int:
        """The number after `eip155:`."""
        return int(self.network.removeprefix("eip155:"))


@dataclass(frozen=True, slots=True)
class LabSettings:
    """Settings of a lab; every default is safe for a throw-away lab on the loopback interface.

    Attributes:
        base_url: address in the links of answers, without a trailing slash.
        database: SQLite file; None for a temporary database that ends with the process.
        seconds_per_day: real seconds that one lab day takes when the clock is `scaled`.
        seed: with the experiment's code, decides its lab window and delays.
        epoch: lab time at the first start; None means the real time.
        pricing_v1: when pricing v1 began; experiments before it have no price (contract 9).
        allow_http_webhooks: let `webhook_url` be plain http on loopback (demo and tests only).
        retry_on_real_clock: webhook back-off runs on real seconds instead of lab time.
        webhook_timeout_seconds: how long a receiver may take to answer before the delivery fails.
        deployment_secret: signs deliveries when neither experiment nor organisation has a secret.
        allowed_hosts: further host names of the tool endpoint, such as a container's.
        session_hours: real hours that a portal session lasts (contract 5.7).
        portal_secret: signs sign-in links.
    """

    base_url: str = "http://127.0.0.1:8000"
    database: Path | None = None
    words: WireWords = field(default_factory=WireWords)
    clock_mode: ClockMode = "manual"
    seconds_per_day: float = 1.0
    seed: str = "lab"
    epoch: datetime | None = None
    pricing_v1: datetime = datetime(2025, 1, 1, tzinfo=UTC)
    allow_http_webhooks: bool = False
    retry_on_real_clock: bool = False
    webhook_timeout_seconds: float = 5.0
    token_prefix: str = "assay"  # noqa: S105 - a prefix, no secret
    member_token: str | None = field(default=None, repr=False)
    viewer_token: str | None = field(default=None, repr=False)
    partner_token: str | None = field(default=None, repr=False)
    sim_token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    deployment_secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    allowed_hosts: tuple[str, ...] = ()
    session_hours: float = 12.0
    portal_secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    x402: X402Settings = field(default_factory=X402Settings)
    mpp: MppSettings = field(default_factory=MppSettings)
