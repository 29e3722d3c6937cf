"""The form of a token: Biscuit inside, `<prefix>_<slug><encoded>` outside (contract 5.2).

The authority block holds owner and expiry; further blocks only add checks. The slug is outside the signature, so it
is a signed fact as well, and compared.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from assay_lab.errors import ConfigurationError
from assay_lab.vocabulary import PaymentMethod

try:
    from biscuit_auth import (
        AuthorizationError,
        AuthorizerBuilder,
        Biscuit,
        BiscuitBlockError,
        BiscuitBuilder,
        BiscuitSerializationError,
        BiscuitValidationError,
        BlockBuilder,
        KeyPair,
        PrivateKey,
    )
except ImportError as error:  # pragma: no cover - the tests have it
    raise ConfigurationError("the local lab needs biscuit-python: pip install biscuit-python") from error

__all__ = ["AuthorizationError", "AuthorizerBuilder", "BadToken", "Claims", "Opened", "Seal"]

LENGTH_MAX: Final = 32_768

# The body starts with a capital letter (the first field of a Biscuit), and a slug has none.
_SHAPE: Final = re.compile(r"([a-z0-9]+)([A-Z][A-Za-z0-9_=-]*)")
_FACT: Final = re.compile(r'^(\w+)\("([^"]*)"\);$', re.MULTILINE)
_EXPIRY: Final = re.compile(
    r"^check if time\(\$time\), \$time < (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ);$", re.MULTILINE
)
_POLICY: Final = re.compile(
    r"^check if payment\(false\) or payment_method\(\$method\), (\[.*\])\.contains\(\$method\);$",
    re.MULTILINE,
)
_METHODS: Final = tuple(PaymentMethod)
_EXPIRES: Final = "check if time($time), $time < {expires_at};"


class BadToken(Exception):
    """Not a token of this lab; the caller must not learn why."""


@dataclass(frozen=True, slots=True)
class Claims:
    """Content of the authority block. `session` is set for tokens of a browser session (contract 5.7)."""

    token_id: str
    org_id: str
    slug: str
    role: str
    user_id: str | None
    session: str | None
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Opened:
    """A genuine token, not yet checked for revocation, expiry and rights."""

    claims: Claims
    biscuit: Biscuit = field(repr=False)
    revocation_ids: tuple[str, ...] = field(repr=False)  # one per block, the root's first
    expires_at: datetime  # the earliest of all expiries that are written in the usual form
    # The last block's payment methods in its order; the checks decide, this only orders
    payment_policy: tuple[str, ...] | None

    @property
    def is_root(self) -> bool:
        """Whether its one block is the lab's own, whose only check is the expiry: it is restricted in nothing else."""
        return len(self.revocation_ids) == 1


class Seal:
    """The lab's key pair: writes tokens and reads genuine ones."""

    def __init__(self, private_key: str, prefix: str) -> None:
        self._pair = KeyPair.from_private_key(PrivateKey(private_key))
        self._start = f"{prefix}_"

    @staticmethod
    def new_key() -> str:
        """A fresh private key, as `ed25519-private/<hex>`."""
        return str(KeyPair().private_key)

    @property
    def public_key(self) -> str:
        """`ed25519/<hex>`: what an offline attenuation is verified with."""
        return str(self._pair.public_key)

    def write(self, claims: Claims) -> str:
        """A root token."""
        names = {
            "token": claims.token_id,
            "org": claims.org_id,
            "slug": claims.slug,
            "role": claims.role,
            "user": claims.user_id,
            "session": claims.session,
        }
        facts = {name: value for name, value in names.items() if value is not None}
        code = " ".join(f"{name}({{{name}}});" for name in facts)
        builder = BiscuitBuilder(f"{code} {_EXPIRES}", {**facts, "expires_at": claims.expires_at})
        return self._start + claims.slug + builder.build(self._pair.private_key).to_base64()

    def read(self, text: str) -> Opened:
        """Verify a token; BadToken when it is malformed, forged, of another key, or its slug was changed."""
        shape = _SHAPE.fullmatch(text.removeprefix(self._start))
        if not text.startswith(self._start) or shape is None or len(text) > LENGTH_MAX:
            raise BadToken
        try:
            biscuit = Biscuit.from_base64(shape[2], self._pair.public_key)
            blocks = [biscuit.block_source(number) for number in range(biscuit.block_count())]
        except (BiscuitValidationError, BiscuitSerializationError, BiscuitBlockError) as error:
            raise BadToken from error
        # One spelling only. Base64 can lose its padding, and the wrapping around the signed parts takes unknown fields:
        # without this, some tokens that were cut off or changed would pass.
        if biscuit.to_base64() != shape[2]:
            raise BadToken
        claims = _read_claims(blocks[0])
        if claims.slug != shape[1]:
            raise BadToken
        expiries = [_read_moment(expiry) for block in blocks for expiry in _EXPIRY.findall(block)]
        policies = [policy for block in blocks[1:] for policy in _read_policies(block)]
        return Opened(
            claims,
            biscuit,
            tuple(biscuit.revocation_ids),
            min(expiries),
            payment_policy=policies[-1] if policies else None,
        )

    def append(self, opened: Opened, code: str, values: Mapping[str, Any]) -> str:
        """The token with one more block; BadToken when it is sealed or would become too long."""
        try:
            child = opened.biscuit.append(BlockBuilder(code, dict(values)))
        except (BiscuitValidationError, BiscuitSerializationError, BiscuitBlockError) as error:
            raise BadToken from error
        text = self._start + opened.claims.slug + child.to_base64()
        if len(text) > LENGTH_MAX:
            raise BadToken
        return text


def _read_moment(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def _read_claims(block: str) -> Claims:
    # Only the lab signs authority blocks, with ids, slugs and role names: no value holds a quotation mark.
    facts = dict(_FACT.findall(block))
    return Claims(
        facts["token"],
        facts["org"],
        facts["slug"],
        facts["role"],
        facts.get("user"),
        facts.get("session"),
        _read_moment(_EXPIRY.findall(block)[0]),
    )


def _read_policies(block: str) -> Sequence[tuple[str, ...]]:
    policies = []
    for text in _POLICY.findall(block):
        try:
            methods = json.loads(text)
        except ValueError:  # written by someone else, with text that JSON reads differently
            continue
        policies.append(tuple(method for method in methods if method in _METHODS))
    return policies
