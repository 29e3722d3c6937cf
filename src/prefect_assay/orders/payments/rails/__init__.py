"""The two machine payment rails: challenges, terms and credentials. A rail judges nothing and sends nothing."""

from pydantic import SecretStr

from prefect_assay.errors import ConfigurationError, PaymentsDisabled
from prefect_assay.orders.payments.rails.mpp import MppRail, TokenIssuer, TokenLimits
from prefect_assay.orders.payments.rails.x402 import X402Rail
from prefect_assay.service.models.vocabulary import PaymentMethod

__all__ = ["MppRail", "Rail", "TokenIssuer", "TokenLimits", "X402Rail", "rail_for"]

# A closed set, as their `Terms` are.
Rail = X402Rail | MppRail


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
                "x402-exact pays from a wallet, and none is given: save an X402Wallet block, and select it as the account's wallet"
            )
        return X402Rail(private_key)
    if method is PaymentMethod.MPP_SPT:
        if issue_token is None:
            raise PaymentsDisabled(
                "mpp-spt pays with shared payment tokens, and no issuer is given: save a SharedPaymentTokens block, "
                "and select it as the account's wallet"
            )
        return MppRail(issue_token)
    raise ConfigurationError(
        f"{method.value} is no machine rail: a person pays it at the invoice's hosted page"
    )
