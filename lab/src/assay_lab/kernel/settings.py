"""Settings of one lab process. Secrets are `repr=False`, so that no log line or traceback shows them."""

import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from assay_lab.words import WireWords

ClockMode = Literal["manual", "scaled", "auto"]

API_PREFIX: Final = "/api/v1"


@dataclass(frozen=True, slots=True)
class MppSettings:
    """The terms of the mpp-spt rail."""

    method: str = "stripe"
    # The receiver's profile in the provider's network; the default is unassigned
    network_id: str = "profile_lab_1ab402"
    payment_method_types: tuple[str, ...] = ("card",)
    valid_seconds: int = 300  # how long a challenge can be answered
    # Key of the challenges' ids.
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)


@dataclass(frozen=True, slots=True)
class X402Settings:
    """The terms of the x402-exact rail."""

    network: str = "eip155:84532"  # CAIP-2 name of an EVM chain; a test network
    # The token contract; name and version are its EIP-712 domain
    asset: str = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
    pay_to: str = "0x00000000000000000000000000000000001ab402"  # the default is unassigned
    asset_name: str = "USDC"
    asset_version: str = "2"
    max_timeout_seconds: int = 300  # how far ahead an authorisation may be valid
    fault: str | None = None  # of payment faults: a wrong term in the challenge, to test a client's guard

    @property
    def chain_id(self) -> int:
        """The number after `eip155:`."""
        return int(self.network.removeprefix("eip155:"))


@dataclass(frozen=True, slots=True)
class LabSettings:
    """Settings of a lab; every default is safe for a throw-away lab on the loopback interface."""

    base_url: str = "http://127.0.0.1:8000"  # in the links of answers; without a trailing slash
    database: Path | None = None  # SQLite file; None for a temporary database that ends with the process
    words: WireWords = field(default_factory=WireWords)
    clock_mode: ClockMode = "manual"
    seconds_per_day: float = 1.0  # real seconds of one lab day when the clock is `scaled`
    seed: str = "lab"  # with the experiment's code, decides its lab window and delays
    epoch: datetime | None = None  # lab time at the first start; None means the real time
    landscape: str | None = None  # a CSV file, or `gb1`; measured in place of published data and model
    landscape_missing: Literal["unknown", "none", "model"] = "unknown"  # of a design that it does not have
    landscape_kd_noise: float = 0.1  # standard deviation of log10 K_D between replicates
    landscape_tm_noise: float = 0.35  # standard deviation of T_m between replicates, in degrees Celsius
    pricing_v1: datetime = datetime(2025, 1, 1, tzinfo=UTC)  # older experiments have no price (contract 9)
    allow_http_webhooks: bool = False  # `webhook_url` may be plain http on loopback (demo and tests only)
    retry_on_real_clock: bool = False  # webhook back-off runs on real seconds instead of lab time
    webhook_timeout_seconds: float = 5.0  # how long a receiver may take to answer
    token_prefix: str = "assay"  # noqa: S105 - a prefix, no secret
    member_token: str | None = field(default=None, repr=False)
    viewer_token: str | None = field(default=None, repr=False)
    partner_token: str | None = field(default=None, repr=False)
    sim_token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    # Signs deliveries when neither experiment nor organisation has a secret
    deployment_secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    allowed_hosts: tuple[str, ...] = ()  # further host names, such as a container's
    # Signs sign-in links.
    portal_secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    x402: X402Settings = field(default_factory=X402Settings)
    mpp: MppSettings = field(default_factory=MppSettings)
