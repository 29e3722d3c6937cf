"""Signs and verifies webhook deliveries, and derives each experiment's secret. Pure: no I/O, no clock of its own.

The secret of an order is an HMAC of its order key. So the receiver needs no store, and a leaked secret signs for one
address only.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

from pydantic import SecretStr, ValidationError

from prefect_assay.errors import ConfigurationError, MalformedDelivery, SignatureError
from prefect_assay.service.legacy_notifications import status_change
from prefect_assay.service.models.service import WireWords
from prefect_assay.service.models.update import Delivery
from prefect_assay.service.models.vocabulary import WEBHOOK_SECRET_MIN_LENGTH

EVENT: Final = "experiment_update"  # contract 6: the only event kind
SCHEME: Final = "sha256="
TOLERANCE_SETTING: Final = "PREFECT_ASSAY_RECEIVER_TOLERANCE_SECONDS"
ORDER_KEY: Final = re.compile(r"[0-9a-f]{20}")
# Replaces the order key in the address of an organization's webhook. An order's digest practically never begins so.
ORGANISATION_KEY: Final = re.compile(r"0{10}[0-9a-f]{10}")
_MISSING: Final = {"Signature": "unsigned", "Event": "label", "Delivery-Id": "label"}
# Begins the signing key of a local lab, whose clock stops and jumps: the age of what it signs says nothing.
LAB_KEY_PREFIX: Final = "local-lab-"
# The same key used elsewhere never gives the same digest.
_DOMAIN: Final = b"prefect-assay/webhook-secret/v1\0"


def derive_secret(signing_key: SecretStr | str, order_key: str) -> str:
    """Return the `webhook_secret` of one experiment: 64 hex characters (contract 4.2: at least 32).

    Raises:
        ConfigurationError: the signing key is shorter than 32 characters.
    """
    key = signing_key.get_secret_value() if isinstance(signing_key, SecretStr) else signing_key
    if len(key) < WEBHOOK_SECRET_MIN_LENGTH:
        raise ConfigurationError(
            f"the webhook signing key is shorter than {WEBHOOK_SECRET_MIN_LENGTH} characters; "
            "make one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'"
        )
    return hmac.new(key.encode(), _DOMAIN + order_key.encode(), hashlib.sha256).hexdigest()


def delivery_url(base_url: str, order_key: str) -> str:
    """Return the `webhook_url` of one experiment: `<base>/<order_key>`.

    Raises:
        ConfigurationError: the base is not a plain web address.
    """
    try:
        parts = urlsplit(base_url)
        plain = parts.scheme in {"http", "https"} and parts.hostname and not (parts.query or parts.fragment)
    except ValueError:
        plain = False
    if not plain:
        raise ConfigurationError(
            "the webhook receiver's address must look like https://host/path, without query or fragment"
        )
    return f"{base_url.rstrip('/')}/{order_key}"


def sign(body: bytes, secret: str) -> str:
    """Return the value of the signature header: `sha256=<hex>`, HMAC-SHA256 of the raw body (contract 6)."""
    return SCHEME + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class Proof:
    """A genuine delivery."""

    delivery: Delivery
    secret: int  # the index of the secret that signed it
    timed: bool = True  # the signed body has a time; only the earlier variant's may lack it
    remarks: tuple[str, ...] = ()  # oddities that are not a reason to refuse it


def verify(
    body: bytes,
    headers: Mapping[str, str],
    secrets: Sequence[str],
    *,
    now: datetime,
    tolerance: timedelta | None,
    words: WireWords | None = None,
) -> Delivery:
    """Return the delivery if it is genuine; for custom receivers, with the arguments of `prove`.

    Raises:
        SignatureError: it is not genuine or cannot be checked; no other exception, whatever the arguments are.
    """
    try:
        return prove(body, headers, secrets, now=now, tolerance=tolerance, words=words).delivery
    except SignatureError:
        raise
    except Exception as error:  # noqa: BLE001 - an unchecked delivery is not genuine
        raise SignatureError(
            f"the delivery cannot be checked ({type(error).__name__}): give the raw body as bytes, the headers as a "
            "mapping, the secrets as a list of texts"
        ) from None


def prove(
    body: bytes,
    headers: Mapping[str, str],
    secrets: Sequence[str],
    *,
    now: datetime,
    tolerance: timedelta | None,
    words: WireWords | None = None,
) -> Proof:
    """Return the delivery if it is genuine, and which secret signed it.

    The signature covers the raw body only, so nothing is parsed before it matches. Headers that differ from the signed
    body, and another kind of event, are only remarked: a refusal is permanent (contract 6, rule 3). A status change of
    the earlier variant (contract 9.4) becomes a delivery whose `event` is `status_change`.

    Args:
        body: the raw request body.
        headers: the request's headers, in any case.
        secrets: every secret that may have signed it; an empty one proves nothing.
        now: the current time, with a time zone.
        tolerance: how far the signed timestamp may be from `now`; None where the service runs on another clock.
        words: the deployment's spelling of the header names.

    Raises:
        MalformedDelivery: signed with a known secret, but not a delivery as the contract describes it.
        SignatureError: it is not genuine. Its `reason` is `unsigned`, `signature`, `too_old`, `ahead` or `label`.
    """
    words = words or WireWords()
    lower_headers = {str(name).lower(): value for name, value in headers.items()}
    signed_by = _signed_by(body, _claims(headers, _header(lower_headers, words, "Signature"), words), secrets)
    earlier = status_change(body, now)
    if earlier is not None:  # its headers are not described
        delivery, timed = earlier
        check_time(delivery.timestamp, now, tolerance)
        return Proof(delivery, signed_by, timed=timed)
    delivery = _parse(body)
    check_time(delivery.timestamp, now, tolerance)
    return Proof(delivery, signed_by, remarks=_remarks(delivery, lower_headers, words))


def _header(headers: Mapping[str, str], words: WireWords, suffix: str) -> str:
    name = words.header(suffix)
    value = headers.get(name.lower())
    if not isinstance(value, str) or not value.strip():
        raise SignatureError(f"the delivery has no {name} header", reason=_MISSING[suffix])
    return value.strip()


def _claims(headers: Mapping[str, str], last: str, words: WireWords) -> list[bytes]:
    """Every signature that the headers state; a proxy may add a second header, or join the two with a comma.

    The signature covers the body alone, so that any valid one proves it (contract 6 has exactly one).
    """
    name = words.header("Signature").lower()
    stated = [value for key, value in headers.items() if str(key).lower() == name and isinstance(value, str)]
    claims = [claim.strip() for value in (*stated, last) for claim in value.split(",")]
    # Compared as bytes: compare_digest raises on text outside ASCII, and a header may hold any. Hex digits may be upper-case.
    return [claim.encode("utf-8", "backslashreplace").lower() for claim in dict.fromkeys(claims)]


def _signed_by(body: bytes, claims: Sequence[bytes], secrets: Sequence[str]) -> int:
    if isinstance(secrets, str):
        raise SignatureError("the secrets are one text, whose letters would count as secrets; give a list")
    # Every secret is tried with every claim, so that the time reveals nothing.
    signatures = [sign(body, secret).encode() for secret in secrets]
    matches = [
        bool(secret) and sum(hmac.compare_digest(signature, claim) for claim in claims) > 0
        for secret, signature in zip(secrets, signatures, strict=True)
    ]
    if not any(matches):
        raise SignatureError("the delivery's signature does not match its body; check the signing key")
    return matches.index(True)


def _parse(body: bytes) -> Delivery:
    try:
        delivery = Delivery.model_validate_json(body)
    except ValidationError as error:
        places = ", ".join(
            f"{'.'.join(str(part) for part in item['loc']) or 'body'} ({item['type']})"
            for item in error.errors(include_url=False, include_context=False, include_input=False)[:5]
        )
        raise MalformedDelivery(f"the signed body is not a delivery: {places}") from None
    except (ValueError, RecursionError) as error:
        raise MalformedDelivery(f"the signed body is not a delivery ({type(error).__name__})") from None
    if not delivery.data.experiment_id or not delivery.data.update_id:
        raise MalformedDelivery("the delivery names no experiment or no update")
    return delivery


def in_utc(moment: datetime) -> datetime:
    """Return the timestamp with a zone; without one it is UTC (contract 1)."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def check_time(timestamp: datetime, now: datetime, tolerance: timedelta | None) -> None:
    """Raise SignatureError (`too_old`, `ahead`) for a signed timestamp that is too far from now."""
    if tolerance is None:
        return
    age = in_utc(now) - in_utc(timestamp)
    if abs(age) > tolerance:
        raise SignatureError(
            f"the delivery's timestamp is {abs(age).total_seconds():.0f} s {'old' if age > timedelta(0) else 'ahead'}, "
            f"over the tolerance of {tolerance.total_seconds():.0f} s: a replay, or a clock that is wrong. "
            f"{TOLERANCE_SETTING} sets the receiver's tolerance",
            reason="too_old" if age > timedelta(0) else "ahead",
        )


def _remarks(delivery: Delivery, headers: Mapping[str, str], words: WireWords) -> tuple[str, ...]:
    remarks = []
    if {delivery.event, _header(headers, words, "Event")} != {EVENT}:
        remarks.append(f"the event is not {EVENT} in both body and header")
    if _header(headers, words, "Delivery-Id") != delivery.delivery_id:
        remarks.append("the delivery id in the header is not the one in the body")
    return tuple(remarks)
