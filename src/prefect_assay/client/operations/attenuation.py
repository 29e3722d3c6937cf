"""Restricting a token without asking the service: appending checks to a Biscuit capability token (contract 4.6).

The service knows nothing of the result. It works all the same, within its checks, and dies with its parent. The
text of the checks is that of the service's own attenuation. Nothing here speaks HTTP.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from pydantic import SecretStr

from prefect_assay.errors import ConfigurationError, InvalidRequest
from prefect_assay.models.tokens import Attenuation

_CHECKS: Final = {
    "allowed_actions": "check if action($action), {allowed_actions}.contains($action);",
    "allowed_org_ids": "check if org($org), {allowed_org_ids}.contains($org);",
    "allowed_resources": "check if resource($resource), {allowed_resources}.contains($resource);",
    "expires_at": "check if time($time), $time < {expires_at};",
    "non_destructive": "check if destructive(false);",
    "payment_policy": (
        "check if payment(false) or payment_method($method), {payment_policy}.contains($method);"
    ),
    "read_only": "check if action($action), {reading}.contains($action);",
}
# The encoded token follows prefix and slug without a mark of its own. A Biscuit starts with one of two field
# numbers, which base64 spells so.
_STARTS: Final = re.compile(r"(?<=[A-Za-z0-9_-])[CE]")
_STARTS_MAX: Final = 100


def attenuate_offline(token: SecretStr | str, attenuation: Attenuation, public_key: str) -> SecretStr:
    """A token that may do less, made without the service.

    Args:
        token: the token to narrow, `<prefix>_<slug><encoded>`; it is not changed.
        attenuation: what the new one may not do, besides what the old one may not. Resources in the singular.
        public_key: of the service, `ed25519/<hex>` or the hex digits alone; the token is verified with it first.

    Raises:
        InvalidRequest: the key is none, or the token is not signed with it.
        ConfigurationError: the extra is not installed.
    """
    try:
        import biscuit_auth  # noqa: PLC0415 - an extra: only who attenuates offline needs it
    except ImportError:
        raise ConfigurationError.missing_extra("tokens", "attenuating tokens offline") from None
    text = token.get_secret_value() if isinstance(token, SecretStr) else token
    try:
        key = biscuit_auth.PublicKey(public_key if "/" in public_key else f"ed25519/{public_key}")
    except ValueError:
        raise InvalidRequest(["public_key: must be ed25519/ and 64 hexadecimal digits"]) from None
    for outside, body in _splits(text):
        try:
            biscuit = biscuit_auth.Biscuit.from_base64(body, key)
        except biscuit_auth.BiscuitValidationError:
            continue
        checks = "\n".join(check for name, check in _CHECKS.items() if getattr(attenuation, name))
        child = biscuit.append(biscuit_auth.BlockBuilder(checks, _values(attenuation)))
        return SecretStr(outside + child.to_base64())
    # The cause is left out: the library's message may quote the token.
    raise InvalidRequest(["token: it is no token that was signed with this public key"])


def _splits(text: str) -> Iterator[tuple[str, str]]:
    """Where the encoded part may start, behind the prefix's underscore."""
    first = text.find("_") + 1
    for start in list(_STARTS.finditer(text, first or len(text)))[:_STARTS_MAX]:
        yield text[: start.start()], text[start.start() :]


def _values(attenuation: Attenuation) -> dict[str, Any]:
    values = {
        "allowed_actions": set(attenuation.allowed_actions or ()),
        "allowed_resources": set(attenuation.allowed_resources or ()),
        "allowed_org_ids": {org_id.lower() for org_id in attenuation.allowed_org_ids or ()},
        "expires_at": attenuation.expires_at and attenuation.expires_at.replace(microsecond=0),
        "payment_policy": list(attenuation.payment_policy or ()),  # an array: its order is the preference
        "reading": {"list", "read"} if attenuation.read_only else None,
    }
    return {name: value for name, value in values.items() if value}
