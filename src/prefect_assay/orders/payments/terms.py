"""The terms of a payment as a service offers them, and its notice of a settlement. No value holds a secret."""

from abc import abstractmethod
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import ClassVar, Final, Self

from prefect_assay.service.models.base import Model
from prefect_assay.service.models.billing import usd

QUOTED_MAX: Final = 120


def ascii_quoted(value: object) -> str:
    """A value of the service for an error message: ASCII, without control characters, bounded."""
    text = ascii(value)
    return text if len(text) <= QUOTED_MAX else f"{text[: QUOTED_MAX - 3]}..."


def list_allowed(values: Collection[str]) -> str:
    """An allow-list for people."""
    return ", ".join(sorted(values)) or "which is empty"


class Terms(Model):
    """One way to pay, as the service offers it; each rail has a subclass. `units_per_cent` of the asset's units are one cent."""

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
