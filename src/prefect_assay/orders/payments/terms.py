"""The terms of a payment as a service offers them, and its notice of a settlement. No value holds a secret."""

from abc import abstractmethod
from collections.abc import Sequence
from datetime import datetime, timedelta
from math import ceil
from typing import Any, ClassVar, Final, Self

from pydantic import AwareDatetime

from prefect_assay.service.models.base import Model
from prefect_assay.service.models.billing import usd

UNITS_PER_CENT: Final = 10_000  # USDC has 6 decimals
QUOTED_MAX: Final = 120


def ascii_quoted(value: object) -> str:
    """A value of the service for an error message: ASCII, without control characters, bounded."""
    text = ascii(value)
    return text if len(text) <= QUOTED_MAX else f"{text[: QUOTED_MAX - 3]}..."


class _Terms(Model):
    """One way to pay, as the service offers it; a kind per rail. `units_per_cent` of the asset's units are one cent."""

    kind: ClassVar[str] = ""
    units_per_cent: ClassVar[int] = 1

    network: str  # a chain as `eip155:<chain id>` (CAIP-2), or the payment provider
    asset: str  # the token contract, or the currency
    pay_to: str  # the receiver's address, or its profile in the provider's network
    amount_units: int  # in the asset's smallest unit

    @abstractmethod
    def valid_seconds(self, now: datetime) -> int:
        """Seconds of validity of a credential made now; not positive when the offer has expired."""

    @abstractmethod
    def until(self, now: datetime) -> datetime:
        """End of the validity of a credential made now."""

    @abstractmethod
    def summary(self) -> str:
        """One line for a person who decides."""

    @property
    def amount(self) -> str:
        """The amount for people; in units when it has a fraction of a cent."""
        cents, rest = divmod(self.amount_units, self.units_per_cent)
        return f"{self.amount_units} units" if rest else usd(cents)


class X402Terms(_Terms):
    """A stablecoin transfer; `accepted` and `resource` are sent back with the credential, verbatim."""

    kind: ClassVar[str] = "exact"
    units_per_cent: ClassVar[int] = UNITS_PER_CENT

    max_timeout_seconds: int  # the requested validity
    resource_url: str | None  # the pay path, as the service states it
    domain_name: str  # of the token's EIP-712 domain
    domain_version: str
    accepted: dict[str, Any]
    resource: dict[str, Any] | None = None

    @property
    def chain_id(self) -> int:
        """The number in `eip155:<chain id>`."""
        return int(self.network.partition(":")[2])

    def valid_seconds(self, now: datetime) -> int:  # noqa: ARG002 - a length, whenever it starts
        """See `_Terms`."""
        return self.max_timeout_seconds

    def until(self, now: datetime) -> datetime:
        """See `_Terms`."""
        return now + timedelta(seconds=self.max_timeout_seconds)

    def summary(self) -> str:
        """See `_Terms`."""
        return (
            f"{self.amount} of {self.asset} on {self.network} to {self.pay_to}, "
            f"valid for {self.max_timeout_seconds} s, for {ascii_quoted(self.resource_url)}"
        )


class MppTerms(_Terms):
    """A charge to a shared payment token; the amount is in cents."""

    kind: ClassVar[str] = "charge"

    external_id: str | None  # the invoice, as the challenge names it
    expires: AwareDatetime
    credential_header: str | None  # the request header for the credential, if the challenge names one
    challenge: dict[str, str]  # verbatim; sent back with the credential

    def valid_seconds(self, now: datetime) -> int:
        """See `_Terms`."""
        return ceil((self.expires - now).total_seconds())

    def until(self, now: datetime) -> datetime:  # noqa: ARG002 - fixed by the challenge
        """See `_Terms`."""
        return self.expires

    def summary(self) -> str:
        """See `_Terms`."""
        return (
            f"{self.amount_units} cents of {ascii_quoted(self.asset)} by {self.network} to {self.pay_to}, "
            f"valid until {self.expires:%Y-%m-%d %H:%M:%S %Z}, for {ascii_quoted(self.external_id)}"
        )


Terms = X402Terms | MppTerms


class Offers(Model):
    """The readable terms of a challenge, and a line on each entry that is not."""

    terms: tuple[Terms, ...]
    ignored: tuple[str, ...] = ()

    @classmethod
    def of(cls, entries: Sequence[Terms | str]) -> Self:
        """The offers of a challenge; an entry is its terms, or a line on why it has none."""
        return cls(
            terms=tuple(entry for entry in entries if not isinstance(entry, str)),
            ignored=tuple(entry for entry in entries if isinstance(entry, str)),
        )


class SettlementNotice(Model):
    """What an answer states about a payment, as far as it is readable. Only the invoice's status is a proof."""

    success: bool | None = None
    reason: str | None = None  # why it failed, in the service's words
    receipt: dict[str, str] | None = None
