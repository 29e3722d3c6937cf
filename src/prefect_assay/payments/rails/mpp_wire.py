"""The headers of the "Payment" scheme, as far as a shared payment token needs them. Judges nothing.

`WWW-Authenticate` comes before anything is allowed: it is limited in size, and whatever is wrong with it is a
PaymentRefused. `Payment-Receipt` and the problem of a refusal come after the payment: reading them never fails.
"""

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import Field, ValidationError

from prefect_assay.errors import PaymentRefused
from prefect_assay.models.base import WireModel
from prefect_assay.payments.rails.challenges import Challenge, parse
from prefect_assay.payments.rails.wire import compact, decode, plain, receipt
from prefect_assay.payments.terms import MppTerms, Offers, Settlement, shown

CHALLENGE_HEADER: Final = "WWW-Authenticate"
RECEIPT_HEADER: Final = "Payment-Receipt"
SCHEME: Final = "Payment"
METHOD: Final = "stripe"  # the protocol's name of the provider whose tokens these are
INTENT: Final = "charge"
RECEIPT_FIELDS: Final = ("status", "method", "reference", "timestamp", "externalId")
REASON_MAX: Final = 200

# Problems that a server of the protocol finds before it charges anything. "verification-failed" is none of
# them: the provider may have answered too late for the server, and have charged all the same.
_PROBLEMS: Final = "https://paymentauth.org/problems/"
_NEVER_CHARGED: Final = frozenset(
    {
        "malformed-credential",
        "invalid-challenge",
        "invalid-payload",
        "payment-expired",
        "payment-insufficient",
    }
)

Word = Annotated[str, Field(pattern=r"^[\x21-\x7e]{1,500}$")]


class _Details(WireModel):
    network_id: Word = Field(alias="networkId")


class _Request(WireModel):
    amount: Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,14})$")]
    currency: Word
    external_id: Word | None = Field(default=None, alias="externalId")
    details: _Details = Field(alias="methodDetails")


class _Parameters(WireModel):
    id: Word
    request: Annotated[str, Field(min_length=1)]
    expires: str


def read_offers(authenticate: str | None, other: str | None = None) -> Offers:
    """The `WWW-Authenticate` header of a 402.

    Args:
        authenticate: the header, None when there is none.
        other: what is offered by another rail, only to name it.

    Raises:
        PaymentRefused: it is absent, too large, malformed, or without a challenge of the scheme.
    """
    instead = f"; it offers {shown(other)}" if other else ""
    if authenticate is None:
        raise PaymentRefused(
            f"the service asks for payment, but without a challenge ({CHALLENGE_HEADER}){instead}"
        )
    try:
        challenges = parse(authenticate)
    except ValueError as error:
        raise PaymentRefused(f"the {CHALLENGE_HEADER} header cannot be read: {error}") from None
    read = [_read(challenge) for challenge in challenges if challenge.scheme == SCHEME.lower()]
    if not read:
        schemes = ", ".join(shown(challenge.scheme) for challenge in challenges) or "nothing"
        raise PaymentRefused(
            f"the service asks for payment, but by no challenge of the scheme {SCHEME}; "
            f"{CHALLENGE_HEADER} has {schemes}{instead}"
        )
    return Offers(
        terms=tuple(item for item in read if isinstance(item, MppTerms)),
        ignored=tuple(item for item in read if isinstance(item, str)),
    )


def read_settlement(status_ok: bool, value: str | None, body: Mapping[str, Any]) -> Settlement:  # noqa: FBT001 - of the answer, as it came
    """What an answer to a credential says.

    Args:
        status_ok: the status is 2xx; a receipt on any other answer is none.
        value: the `Payment-Receipt` header.
        body: the answer's body; a refusal is described there.
    """
    if not status_ok:
        known = str(body.get("type")).removeprefix(_PROBLEMS) in _NEVER_CHARGED
        reason = plain(body.get("detail")) or plain(body.get("error"))
        return Settlement(success=False if known else None, reason=reason[:REASON_MAX] if reason else None)
    try:
        stated = decode(value or "")
    except ValueError:
        return Settlement()
    kept = receipt(stated, RECEIPT_FIELDS)
    return Settlement(success=True if kept.get("status") == "success" else None, receipt=kept or None)


def encode(challenge: Mapping[str, str], payload: Mapping[str, str]) -> str:
    """The credential as a header value."""
    packed = urlsafe_b64encode(compact({"challenge": challenge, "payload": payload}))
    return f"{SCHEME} {packed.decode().rstrip('=')}"


def _read(challenge: Challenge) -> MppTerms | str:
    stated = challenge.parameters
    method, intent = stated.get("method"), stated.get("intent")
    if (method, intent) != (METHOD, INTENT):
        return f"method {shown(method)}, intent {shown(intent)}: not known here"
    try:
        parameters = _Parameters.model_validate(stated)
        request = _Request.model_validate(decode(parameters.request))
    except ValidationError as error:
        places = {".".join(str(part) for part in item["loc"]) for item in error.errors(include_input=False)}
        return f"{INTENT} by {METHOD}: malformed or missing {', '.join(sorted(places))}"
    except ValueError as error:
        return f"{INTENT} by {METHOD}: its request cannot be read: {error}"
    expires = _instant(parameters.expires)
    if expires is None:
        return f"{INTENT} by {METHOD}: expires is {shown(parameters.expires)}, no date and time with its zone"
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


def _instant(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else None
