"""`Rail`, the interface of a machine rail, and `rail_for`, which makes the one of a payment method (contract 2.6)."""

from typing import Protocol

from pydantic import SecretStr

from prefect_assay.errors import ConfigurationError, PaymentsDisabled
from prefect_assay.models.vocabulary import PaymentMethod
from prefect_assay.payments.api import PayAnswer
from prefect_assay.payments.rails.mpp import MppRail, TokenIssuer
from prefect_assay.payments.rails.x402 import X402Rail
from prefect_assay.payments.terms import Offers, SettlementNotice, Terms


class Rail(Protocol):
    """Reads offers and makes credentials. It judges nothing and sends nothing."""

    @property
    def method(self) -> PaymentMethod:
        """The rail's name in the contract."""
        ...

    @property
    def payer(self) -> str:
        """The payer, for people; no secret."""
        ...

    @property
    def repeatable(self) -> bool:
        """Two credentials with the same nonce can settle only once."""
        ...

    def nonce(self, base_url: str, invoice_id: str, terms: Terms) -> str:
        """The rail's reference of the payment."""
        ...

    def offers(self, answer: PayAnswer) -> Offers:
        """The offers of a 402; PaymentRefused when it cannot be read."""
        ...

    def settlement(self, answer: PayAnswer) -> SettlementNotice:
        """What an answer states about the payment; never fails."""
        ...

    def credential(self, terms: Terms, *, nonce: str, valid_before: int) -> dict[str, str]:
        """The request headers that pay, valid until a Unix time; on a repeatable rail equal for equal arguments."""
        ...


def rail_for(
    method: PaymentMethod, *, private_key: SecretStr | None = None, issue_token: TokenIssuer | None = None
) -> Rail:
    """The rail of a payment method, ready to pay. Call it before anything is ordered.

    Raises:
        PaymentsDisabled: the means to pay are not given: the wallet's key, or the issuer of shared payment tokens.
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
