"""The rails: what `settle` needs of one, and which exist.

Contract 2.6 names two machine rails, `x402-exact` and `mpp-spt`; `async_invoice` is paid by a person.
"""

from typing import Protocol

from pydantic import SecretStr

from prefect_assay.errors import ConfigurationError, PaymentsDisabled
from prefect_assay.models.vocabulary import PaymentMethod
from prefect_assay.payments.api import PayAnswer
from prefect_assay.payments.rails.mpp import MppRail, TokenIssuer
from prefect_assay.payments.rails.x402 import X402Rail
from prefect_assay.payments.terms import Offers, SettlementNotice, Terms


class Rail(Protocol):
    """Reads what is offered and makes the credential. It judges nothing and sends nothing."""

    @property
    def method(self) -> PaymentMethod:
        """The rail's name in the contract."""
        ...

    @property
    def payer(self) -> str:
        """Who pays, for people; no secret."""
        ...

    @property
    def repeatable(self) -> bool:
        """Whether a second credential with the same nonce cannot settle besides the first."""
        ...

    def nonce(self, base_url: str, invoice_id: str, terms: Terms) -> str:
        """The reference of the payment: two credentials with the same one can settle only once."""
        ...

    def offers(self, answer: PayAnswer) -> Offers:
        """What a 402 offers; PaymentRefused when it cannot be read."""
        ...

    def settlement(self, answer: PayAnswer) -> SettlementNotice:
        """What an answer says became of the payment; never fails."""
        ...

    def credential(self, terms: Terms, *, nonce: str, valid_before: int) -> dict[str, str]:
        """The request headers that pay; the same arguments give the same headers."""
        ...


def rail_for(
    method: PaymentMethod, *, private_key: SecretStr | None = None, issue_token: TokenIssuer | None = None
) -> Rail:
    """The rail of a payment method, ready to pay. Ask before anything is ordered.

    Args:
        method: the payment method.
        private_key: the wallet's key, for `x402-exact`.
        issue_token: makes a shared payment token within given limits, for `mpp-spt`.

    Raises:
        PaymentsDisabled: the rail's means to pay are not given.
        ConfigurationError: the rail does not exist, its extra is missing, or the key is no key.
    """
    if method is PaymentMethod.X402_EXACT:
        if private_key is None:
            raise PaymentsDisabled(
                "x402-exact pays from a wallet, and none is given: set an X402Wallet block as wallet"
            )
        return X402Rail(private_key)
    if method is PaymentMethod.MPP_SPT:
        if issue_token is None:
            raise PaymentsDisabled(
                "mpp-spt pays with shared payment tokens, and no issuer is given: set a SharedPaymentTokens "
                "block as wallet"
            )
        return MppRail(issue_token)
    raise ConfigurationError(
        f"{method.value} is no machine rail: a person pays it at the invoice's hosted page"
    )
