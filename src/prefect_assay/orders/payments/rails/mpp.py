"""The `mpp-spt` rail: a charge to a shared payment token, which the user's own issuer makes for this one payment.

A token has no nonce that prevents a second settlement, so a payment of unknown outcome is never sent again. Before the payment, a
malformed `WWW-Authenticate` raises PaymentRefused. After it, reading an answer never raises.
"""

from base64 import urlsafe_b64encode
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from math import ceil
from typing import Annotated, Any, ClassVar, Final

from pydantic import AwareDatetime, Field, SecretStr, ValidationError

from prefect_assay.errors import PaymentError, PaymentRefused
from prefect_assay.orders.payments.interfaces import is_success, read_header
from prefect_assay.orders.payments.rails.headers import (
    Challenge,
    clean_line,
    decode_header,
    dump_compact,
    list_wrong_fields,
    parse_challenges,
    select_receipt,
)
from prefect_assay.orders.payments.rails.rail import Rail
from prefect_assay.orders.payments.terms import (
    Offers,
    SettlementNotice,
    Terms,
    ascii_quoted,
    list_allowed,
)
from prefect_assay.service.models.base import ExactModel, Model
from prefect_assay.service.models.billing import CURRENCY, PayAnswer
from prefect_assay.service.models.vocabulary import PaymentMethod

CHALLENGE_HEADER: Final = "WWW-Authenticate"
# The bearer token is in Authorization; a credential there would need a second value of that header.
CREDENTIAL_HEADER: Final = "Payment-Authorization"
RECEIPT_HEADER: Final = "Payment-Receipt"
SCHEME: Final = "Payment"
METHOD: Final = "stripe"  # the protocol's name of the provider whose tokens these are
INTENT: Final = "charge"
RECEIPT_FIELDS: Final = ("status", "method", "reference", "timestamp", "externalId")
REASON_MAX: Final = 200

# Problems that a server of the protocol finds before it charges anything. "verification-failed" does not belong here:
# the provider may have charged and answered too late for the server. Nor does "invalid-challenge": it is also the answer
# to a challenge that was used before, so an earlier delivery of the same request may have charged.
_PROBLEMS: Final = "https://paymentauth.org/problems/"
_NEVER_CHARGED: Final = frozenset(
    {
        "malformed-credential",
        "invalid-payload",
        "payment-expired",
        "payment-insufficient",
    }
)

Word = Annotated[str, Field(pattern=r"^[\x21-\x7e]{1,500}$")]


class MppTerms(Terms):
    """A charge to a shared payment token; the amount is in cents."""

    kind: ClassVar[str] = "charge"

    external_id: str | None  # the invoice, as the challenge names it
    expires: AwareDatetime
    credential_header: str | None  # the request header for the credential, if the challenge names one
    challenge: dict[str, str]  # verbatim; sent back with the credential

    def valid_seconds(self, now: datetime) -> int:
        """See `Terms`."""
        return ceil((self.expires - now).total_seconds())

    def until(self, now: datetime) -> datetime:  # noqa: ARG002 - fixed by the challenge
        """See `Terms`."""
        return self.expires

    def summary(self) -> str:
        """See `Terms`."""
        return (
            f"{self.amount_units} cents of {ascii_quoted(self.asset)} by {self.network} to {self.pay_to}, "
            f"valid until {self.expires:%Y-%m-%d %H:%M:%S %Z}, for {ascii_quoted(self.external_id)}"
        )


class _Details(ExactModel):
    network_id: Word = Field(alias="networkId")


class _Request(ExactModel):
    amount: Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,14})$")]
    currency: Word
    external_id: Word | None = Field(default=None, alias="externalId")
    details: _Details = Field(alias="methodDetails")


class _Parameters(ExactModel):
    id: Word
    request: Annotated[str, Field(min_length=1)]
    expires: str


def read_offers(authenticate: str | None) -> Offers:
    """The offers in the `WWW-Authenticate` of a 402, or PaymentRefused."""
    if authenticate is None:
        raise PaymentRefused(f"the service asks for payment, but without a challenge ({CHALLENGE_HEADER})")
    try:
        challenges = parse_challenges(authenticate)
    except ValueError as error:
        raise PaymentRefused(f"the {CHALLENGE_HEADER} header cannot be read: {error}") from None
    read = [_read_challenge(challenge) for challenge in challenges if challenge.scheme == SCHEME.lower()]
    if not read:
        schemes = ", ".join(ascii_quoted(challenge.scheme) for challenge in challenges) or "nothing"
        raise PaymentRefused(
            f"the service asks for payment, but by no challenge of the scheme {SCHEME}; "
            f"{CHALLENGE_HEADER} has {schemes}"
        )
    return Offers.of(read)


def read_settlement(status_ok: bool, value: str | None, body: Mapping[str, Any]) -> SettlementNotice:  # noqa: FBT001 - of the answer, as it came
    """The answer to a credential: the `Payment-Receipt` header of a 2xx, else the problem in the body."""
    if not status_ok:
        known = str(body.get("type")).removeprefix(_PROBLEMS) in _NEVER_CHARGED
        reason = clean_line(body.get("detail")) or clean_line(body.get("error"))
        return SettlementNotice(
            success=False if known else None, reason=reason[:REASON_MAX] if reason else None
        )
    try:
        stated = decode_header(value or "")
    except ValueError:
        return SettlementNotice()
    kept = select_receipt(stated, RECEIPT_FIELDS)
    return SettlementNotice(success=True if kept.get("status") == "success" else None, receipt=kept or None)


def encode_credential(challenge: Mapping[str, str], payload: Mapping[str, str]) -> str:
    """The credential as a header value."""
    packed = urlsafe_b64encode(dump_compact({"challenge": challenge, "payload": payload}))
    return f"{SCHEME} {packed.decode().rstrip('=')}"


def _read_challenge(challenge: Challenge) -> MppTerms | str:
    stated = challenge.parameters
    method, intent = stated.get("method"), stated.get("intent")
    if (method, intent) != (METHOD, INTENT):
        return f"method {ascii_quoted(method)}, intent {ascii_quoted(intent)}: not known here"
    try:
        parameters = _Parameters.model_validate(stated)
        request = _Request.model_validate(decode_header(parameters.request))
    except ValidationError as error:
        return f"{INTENT} by {METHOD}: malformed or missing {list_wrong_fields(error)}"
    except ValueError as error:
        return f"{INTENT} by {METHOD}: its request cannot be read: {error}"
    expires = _parse_instant(parameters.expires)
    if expires is None:
        return f"{INTENT} by {METHOD}: expires is {ascii_quoted(parameters.expires)}, no date and time with its zone"
    return MppTerms(
        network=METHOD,
        asset=request.currency,
        pay_to=request.details.network_id,
        amount_units=int(request.amount),
        external_id=request.external_id,
        expires=expires,
        credential_header=stated.get("header"),
        challenge=stated,
    )


def _parse_instant(text: str) -> datetime | None:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return None
    return instant if instant.tzinfo else None


_TOKEN_MAX: Final = 2000


class TokenLimits(Model):
    """The limits of a shared payment token."""

    currency: str  # lower case, `usd`
    max_amount: int  # cents: exactly the invoice's amount
    expires_at: int  # Unix seconds
    network_id: str  # the receiver's profile in the provider's network; only it may charge the token


TokenIssuer = Callable[[TokenLimits], SecretStr | str]


class MppRail(Rail):
    """Pays with tokens of one issuer, to the listed receivers (`network_ids`, profile ids in the provider's network)."""

    method = PaymentMethod.MPP_SPT
    title = "shared payment token"
    wallet_block = "SharedPaymentTokens"
    challenge_header = CHALLENGE_HEADER
    is_repeatable = False
    payer = "shared payment tokens"

    def __init__(self, issue: TokenIssuer, network_ids: Collection[str]) -> None:
        """Take the issuer: it is called once per payment, after every check and right before sending."""
        self._issue = issue
        self._network_ids = tuple(network_ids)
        self._tokens: list[SecretStr] = []

    def __repr__(self) -> str:
        return "MppRail()"

    def make_nonce(self, base_url: str, invoice_id: str, terms: Terms) -> str:  # noqa: ARG002 - the service chooses it
        """The challenge's id, which names the one payment that the challenge can become."""
        return _require_charge(terms).challenge["id"]

    def read_offers(self, answer: PayAnswer) -> Offers:
        """See `Rail`."""
        return read_offers(read_header(answer, CHALLENGE_HEADER))

    def find_problems(self, terms: Terms, *, invoice_id: str, pay_url: str) -> tuple[str, ...]:  # noqa: ARG002 - a challenge does not name it
        """See `Rail`."""
        charge = _require_charge(terms)
        problems = (
            _check_external_id(charge, invoice_id),
            _check_currency(charge),
            _network_id(charge, self._network_ids),
            _credential_header(charge),
        )
        return tuple(problem for problem in problems if problem)

    def read_settlement(self, answer: PayAnswer) -> SettlementNotice:
        """See `Rail`."""
        # A provider's text may repeat the token, and the notice is kept and shown.
        body = {name: self._hide_token(value) for name, value in answer.body.items()}
        notice = read_settlement(is_success(answer), read_header(answer, RECEIPT_HEADER), body)
        receipt = {name: self._hide_token(value) for name, value in (notice.receipt or {}).items()}
        return notice.model_copy(update={"receipt": receipt or None})

    def make_credential(self, terms: Terms, *, nonce: str, valid_before: int) -> dict[str, str]:  # noqa: ARG002 - the challenge has it
        """See `Rail`; the token is issued now."""
        charge = _require_charge(terms)
        limits = TokenLimits(
            currency=charge.asset.lower(),
            max_amount=charge.amount_units,
            expires_at=valid_before,
            network_id=charge.pay_to,
        )
        token = _issue_token(self._issue, limits)
        self._tokens.append(SecretStr(token))
        payload = {"spt": token}
        if charge.external_id is not None:
            payload["externalId"] = charge.external_id
        return {CREDENTIAL_HEADER: encode_credential(charge.challenge, payload)}

    def _hide_token(self, value: Any) -> Any:
        for token in self._tokens:
            value = value.replace(token.get_secret_value(), "***") if isinstance(value, str) else value
        return value


def _require_charge(terms: Terms) -> MppTerms:
    if not isinstance(terms, MppTerms):
        raise PaymentRefused(f"these are not terms of {PaymentMethod.MPP_SPT.value}: {terms.summary()}")
    return terms


def _check_external_id(terms: MppTerms, invoice_id: str) -> str | None:
    if terms.external_id == invoice_id:
        return None
    return f"externalId is {ascii_quoted(terms.external_id)}, this invoice's is {invoice_id}"


def _check_currency(terms: MppTerms) -> str | None:
    if terms.asset.lower() == CURRENCY:
        return None
    return f"the currency is {ascii_quoted(terms.asset)}, not {CURRENCY}"


def _network_id(terms: MppTerms, allowed: Collection[str]) -> str | None:
    # Ids, unlike addresses in hex, differ when their case differs.
    if terms.pay_to in allowed:
        return None
    return f"networkId {ascii_quoted(terms.pay_to)} is not in network_ids of the SharedPaymentTokens block ({list_allowed(allowed)})"


def _credential_header(terms: MppTerms) -> str | None:
    header_name = terms.credential_header
    if header_name is None:
        return (
            f"it names no header for the credential, which would then replace the API token; a challenge must say "
            f'header="{CREDENTIAL_HEADER}"'
        )
    if header_name.lower() == CREDENTIAL_HEADER.lower():
        return None
    return f"it wants the credential in the header {ascii_quoted(header_name)}; only {CREDENTIAL_HEADER} is answered"


def _issue_token(issue: TokenIssuer, limits: TokenLimits) -> str:
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
