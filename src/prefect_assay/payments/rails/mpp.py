"""The `mpp-spt` rail: a charge to a shared payment token, which the user's own issuer makes for this one payment.

A token may be used for no more than the invoice's amount, and no longer than the challenge lives. Nothing here
makes a second settlement impossible, as the nonce of a signed transfer does: each challenge and each token can be
settled. So a payment in doubt is never sent again. This module judges no terms; the guard has done so before.
"""

from collections.abc import Callable
from typing import Any, Final

from pydantic import SecretStr

from prefect_assay.errors import PaymentError, PaymentRefused
from prefect_assay.models.base import Model
from prefect_assay.models.vocabulary import PaymentMethod
from prefect_assay.payments.api import HTTP_MULTIPLE_CHOICES, HTTP_OK, PayAnswer, header
from prefect_assay.payments.guard_terms import CREDENTIAL_HEADER
from prefect_assay.payments.rails.mpp_wire import (
    CHALLENGE_HEADER,
    RECEIPT_HEADER,
    encode,
    read_offers,
    read_settlement,
)
from prefect_assay.payments.rails.x402_wire import REQUIRED_HEADER
from prefect_assay.payments.terms import MppTerms, Offers, Settlement, Terms

_TOKEN_MAX: Final = 2000


class TokenLimits(Model):
    """What a shared payment token must be limited to.

    Attributes:
        currency: lower case, `usd`.
        max_amount: the most that may be charged, in cents: exactly the invoice's amount.
        expires_at: when the token must stop working, in Unix seconds.
        network_id: the receiver's profile in the provider's network; only it may charge the token.
    """

    currency: str
    max_amount: int
    expires_at: int
    network_id: str


TokenIssuer = Callable[[TokenLimits], SecretStr | str]


class MppRail:
    """Pays with tokens of one issuer. A token stays inside: not in the repr, an error, the ledger or a log.

    Attributes:
        method: `mpp-spt`.
        payer: who pays, for people.
    """

    method = PaymentMethod.MPP_SPT
    payer = "shared payment tokens"
    repeatable = False

    def __init__(self, issue: TokenIssuer) -> None:
        """Take what issues tokens: called once for each payment, after every check and right before sending."""
        self._issue = issue
        self._tokens: list[SecretStr] = []

    def __repr__(self) -> str:
        return "MppRail()"

    def nonce(self, base_url: str, invoice_id: str, terms: Terms) -> str:  # noqa: ARG002 - the service chooses it
        """The challenge's id: it names the one payment that the challenge can become."""
        return _own(terms).challenge["id"]

    def offers(self, answer: PayAnswer) -> Offers:
        """What a 402 offers; PaymentRefused when it cannot be read."""
        return read_offers(header(answer, CHALLENGE_HEADER), header(answer, REQUIRED_HEADER) and "x402")

    def settlement(self, answer: PayAnswer) -> Settlement:
        """What an answer says became of the payment; never fails."""
        ok = HTTP_OK <= answer.status_code < HTTP_MULTIPLE_CHOICES
        # A provider's words may repeat the token, and what is said here is kept and shown.
        body = {name: self._hidden(value) for name, value in answer.body.items()}
        said = read_settlement(ok, header(answer, RECEIPT_HEADER), body)
        receipt = {name: self._hidden(value) for name, value in (said.receipt or {}).items()}
        return said.model_copy(update={"receipt": receipt or None})

    def credential(self, terms: Terms, *, nonce: str, valid_before: int) -> dict[str, str]:  # noqa: ARG002 - the challenge has it
        """The request header that pays, with a token that is issued now.

        Args:
            terms: accepted by the guard.
            nonce: from `nonce`.
            valid_before: until when the token may be charged, in Unix seconds.

        Raises:
            PaymentRefused: no token was issued.
        """
        return {CREDENTIAL_HEADER: self._new(_own(terms), valid_before)}

    def _new(self, charge: MppTerms, expires_at: int) -> str:
        limits = TokenLimits(
            currency=charge.asset.lower(),
            max_amount=charge.amount_units,
            expires_at=expires_at,
            network_id=charge.pay_to,
        )
        token = _issued(self._issue, limits)
        self._tokens.append(SecretStr(token))
        payload = {"spt": token}
        if charge.external_id is not None:
            payload["externalId"] = charge.external_id
        return encode(charge.challenge, payload)

    def _hidden(self, value: Any) -> Any:
        for token in self._tokens:
            value = value.replace(token.get_secret_value(), "***") if isinstance(value, str) else value
        return value


def _own(terms: Terms) -> MppTerms:
    if not isinstance(terms, MppTerms):
        raise PaymentRefused(f"these are no terms of {PaymentMethod.MPP_SPT.value}: {terms.summary()}")
    return terms


def _issued(issue: TokenIssuer, limits: TokenLimits) -> str:
    try:
        token = issue(limits)
    except PaymentError:
        raise
    except Exception as error:  # noqa: BLE001 - the user's code
        kind = type(error).__name__
    else:
        text = token.get_secret_value() if isinstance(token, SecretStr) else token
        if isinstance(text, str) and text.isascii() and text.isprintable() and 0 < len(text) <= _TOKEN_MAX:
            return text
        kind = "no text that can be one"
    # Raised out here, without a cause: its frames and text could carry the token.
    raise PaymentRefused(f"the issuer gave no shared payment token ({kind}); nothing was sent")
