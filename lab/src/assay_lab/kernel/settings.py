"""Settings of one lab process. Secrets are `repr=False`, so that no log line or traceback shows them."""

import math
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, get_args

from assay_lab.words import WireWords

ClockMode = Literal["manual", "scaled", "auto"]

API_PREFIX: Final = "/api/v1"
SECONDS_PER_DAY_MIN: Final = 0.001


def read_clock(text: str) -> tuple[ClockMode, float]:
    """The mode of `--clock`, and the real seconds of a lab day, which only `scaled` needs.

    Raises:
        ValueError: the text has another form.
    """
    word, _, rate = text.partition(":")
    mode: ClockMode | None = next((known for known in get_args(ClockMode) if known == word), None)
    try:
        seconds_per_day = float(rate or 1)
    except ValueError:
        seconds_per_day = 0.0
    has_its_rate = (mode == "scaled") == bool(rate)
    if mode is None or not has_its_rate or not SECONDS_PER_DAY_MIN <= seconds_per_day < math.inf:
        raise ValueError(
            f"--clock takes manual, auto or scaled:SECONDS_PER_DAY, at least {SECONDS_PER_DAY_MIN} seconds"
        )
    return mode, seconds_per_day


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
    allow_http_webhooks: bool = False  # to private hosts, by plain http (demo and tests only)
    retry_on_real_clock: bool = False  # webhook back-off runs on real seconds instead of lab time
    webhook_timeout_seconds: float = 5.0  # how long a receiver may take to answer
    token_prefix: str = "assay"  # noqa: S105 - a prefix, no secret
    member_token: str | None = field(default=None, repr=False)
    viewer_token: str | None = field(default=None, repr=False)
    partner_token: str | None = field(default=None, repr=False)
    sim_token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    # Signs deliveries when neither experiment nor organization has a secret
    deployment_secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    allowed_hosts: tuple[str, ...] = ()  # further host names, such as a container's
    # Signs sign-in links.
    portal_secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    # What each payment rail offers, by its wire word; a rail that is missing here has its defaults.
    rails: dict[str, Any] = field(default_factory=dict, repr=False)
