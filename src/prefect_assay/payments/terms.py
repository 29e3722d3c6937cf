"""What a service offers: the terms of one payment, and what it says about a settlement.

Plain values between a rail, which reads them, and the guard, which judges them. No secret in any of them.
"""

from typing import Any, Final

from prefect_assay.models.base import Model

UNITS_PER_CENT: Final = 10_000  # USDC has 6 decimals
SHOWN_MAX: Final = 120


def shown(value: object) -> str:
    """A foreign value for an error message: ASCII only, no control characters, never long."""
    text = ascii(value)
    return text if len(text) <= SHOWN_MAX else f"{text[: SHOWN_MAX - 3]}..."


def dollars(cents: int) -> str:
    """Integer cents as a figure for people: 5000 becomes `50.00 USD`."""
    return f"{cents // 100}.{cents % 100:02d} USD"


class Terms(Model):
    """One way to pay, as the service offers it.

    Attributes:
        network: chain in CAIP-2 form, `eip155:<chain id>`.
        asset: address of the token contract.
        pay_to: address of the receiver.
        amount_units: in the token's smallest unit; 10,000 units are one cent.
        max_timeout_seconds: how long the service wants the authorisation to be valid.
        resource_url: what the service says is being paid for.
        domain_name: name in the token's EIP-712 domain.
        domain_version: version in the token's EIP-712 domain.
        accepted: the offered entry, verbatim; it is sent back with the credential.
        resource: the resource object, verbatim.
    """

    network: str
    asset: str
    pay_to: str
    amount_units: int
    max_timeout_seconds: int
    resource_url: str | None
    domain_name: str
    domain_version: str
    accepted: dict[str, Any]
    resource: dict[str, Any] | None = None

    @property
    def chain_id(self) -> int:
        """The number in `eip155:<chain id>`."""
        return int(self.network.partition(":")[2])

    @property
    def amount(self) -> str:
        """The amount for people; a fraction of a cent is shown in units."""
        cents, rest = divmod(self.amount_units, UNITS_PER_CENT)
        return f"{self.amount_units} units" if rest else dollars(cents)

    def summary(self) -> str:
        """One line for a person who decides."""
        return (
            f"{self.amount} of {self.asset} on {self.network} to {self.pay_to}, "
            f"valid for {self.max_timeout_seconds} s, for {shown(self.resource_url)}"
        )


class Offers(Model):
    """All that a challenge offers: readable terms, and a line on everything that is none."""

    terms: tuple[Terms, ...]
    ignored: tuple[str, ...] = ()


class Settlement(Model):
    """What the service says became of a payment; kept, but no proof: the invoice's status is.

    Attributes:
        success: None when the answer carries no readable statement.
        reason: why it failed, in the service's words.
        receipt: the known fields of the statement, as text.
    """

    success: bool | None = None
    reason: str | None = None
    receipt: dict[str, str] | None = None
