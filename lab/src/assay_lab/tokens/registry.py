"""Bearer tokens: minting, checking, attenuating and revoking them (contract 4.6 and 5).

The database keeps a record and the last revocation id per token, never the token (contract 5.4).
"""

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from assay_lab.kernel import times
from assay_lab.kernel.clock import Clock
from assay_lab.kernel.refusals import Refusal
from assay_lab.kernel.store import Db, Row, Store
from assay_lab.tokens import permissions, sessions
from assay_lab.tokens.encoding import BadToken, Claims, Opened, Seal
from assay_lab.tokens.permissions import Restrictions, Role
from assay_lab.tokens.principal import Grant, Principal

Kind = Literal["portal", "oauth", "minted", "start"]

# Contract 8: what the portal offers, and what a minted token gets.
EXPIRY_DAYS: Final = (7, 30, 90, 365)
DEFAULT_DAYS: Final = 90

# What needs a living token and no capability: whoami.
SELF: Final = "identity"

_BEARER: Final = "bearer "
# One message for missing, malformed, forged and revoked, so that it does not reveal which (contract 5.9).
_UNAUTHORIZED: Final = "missing or invalid token"
# Only its holder can send a genuine token, so that this reveals nothing.
_EXPIRED: Final = f"{_UNAUTHORIZED}: expired"
_OPENED_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class Minted:
    """A token and the id of its record. The token is shown this once."""

    id: str
    token: str = field(repr=False)


class Tokens:
    """The tokens of one lab."""

    def __init__(self, store: Store, clock: Clock, prefix: str) -> None:
        self._store = store
        self._clock = clock
        self._seal = Seal(_private_key(store), prefix)
        # Verified tokens by digest. Revocation and expiry are looked up each time.
        self._opened: dict[bytes, Opened] = {}
        # Fixed texts of the settings, by digest: record, expiry and text of the token that each represents.
        self._fixed: dict[bytes, tuple[str, str, str] | None] = {}

    @property
    def public_key(self) -> str:
        """`ed25519/<hex>`, for offline attenuation."""
        return self._seal.public_key

    def mint(
        self,
        db: Db,
        *,
        org_id: str,
        role: Role,
        name: str,
        days: float | None = None,
        expires_at: datetime | None = None,
        user_id: str | None = None,
        kind: Kind = "portal",
        session: str | None = None,
    ) -> Minted:
        """Make a root token for `days` lab days (default 90), until `expires_at`, or as long as `session` lives."""
        now = self._clock.now(org_id)
        end = (expires_at or now + timedelta(days=days or DEFAULT_DAYS)).replace(microsecond=0)
        record = {"org_id": org_id, "user_id": user_id, "name": name, "kind": kind, "role": role}
        token_id = str(uuid.uuid4())
        text, revocation_id = self._write(db, token_id, record, end, session)
        dates = {"created_at": now, "expires_at": end}
        db.insert("tokens", {"id": token_id, **record, **dates, "revocation_id": revocation_id})
        return Minted(token_id, text)

    def _write(
        self, db: Db, token_id: str, record: Mapping[str, Any], end: datetime, session: str | None
    ) -> tuple[str, str]:
        org = db.known("organizations", record["org_id"], "organization")
        claims = Claims(
            token_id, record["org_id"], org["slug"], record["role"], record["user_id"], session, end
        )
        text = self._seal.write(claims)
        return text, self._seal.read(text).revocation_ids[-1]

    def represent_by(
        self,
        db: Db,
        text: str,
        *,
        name: str,
        role: Role,
        org_id: str,
        user_id: str | None,
        expires_at: datetime,
    ) -> None:
        """Let a fixed text act as a token; its record survives restarts, with children and revocation."""
        digest = _digest_text(text)
        self._fixed.setdefault(digest, None)
        end = expires_at.replace(microsecond=0)
        row = db.one("SELECT id FROM tokens WHERE alias = ?", digest.hex())
        if row is not None:
            db.update("tokens", row["id"], expires_at=end)
            return
        minted = self.mint(
            db, org_id=org_id, role=role, name=name, expires_at=end, user_id=user_id, kind="start"
        )
        db.update("tokens", minted.id, alias=digest.hex())

    def _genuine(self, db: Db, text: str) -> str:
        """The token that a fixed text represents, rewritten when its record has changed; other texts are themselves."""
        digest = _digest_text(text)
        if digest not in self._fixed:
            return text
        row = db.one("SELECT * FROM tokens WHERE alias = ?", digest.hex())
        if row is None:
            return text
        known = self._fixed[digest]
        if known is None or known[:2] != (row["id"], row["expires_at"]):
            token, revocation_id = self._write(db, row["id"], row, times.read(row["expires_at"]), None)
            db.update("tokens", row["id"], revocation_id=revocation_id)
            known = self._fixed[digest] = (row["id"], row["expires_at"], token)
        return known[2]

    def authenticate(self, header: str | None) -> Principal:
        """The caller; a 401 does not reveal whether the token is missing, unknown or revoked."""
        token = header[len(_BEARER) :].strip() if header and header.lower().startswith(_BEARER) else ""
        with self._store.transaction() as db:
            return self.principal(db, token)

    def principal(self, db: Db, token: str) -> Principal:
        """The holder of a token; 401 unless it is genuine and alive."""
        opened = self._open(self._genuine(db, token))
        root, nearest = self._records(db, opened)
        if root is None or root["revoked_at"] or nearest is None or nearest["revoked_at"]:
            raise Refusal(401, _UNAUTHORIZED)
        now = self._clock.now(root["org_id"])
        claims = opened.claims
        ended = claims.session is not None and not sessions.is_alive(db, claims.session)  # contract 5.7
        if opened.expires_at <= now:
            raise Refusal(401, _EXPIRED)
        if ended:
            raise Refusal(401, _UNAUTHORIZED)
        return Principal(
            claims.org_id,
            root["org_name"],
            nearest["id"],
            claims.role,
            times.stamp(opened.expires_at),
            claims.user_id,
            root["id"],
            Grant(opened, now),
        )

    def _open(self, token: str) -> Opened:
        digest = _digest_text(token)
        opened = self._opened.get(digest)
        if opened is None:
            try:
                opened = self._seal.read(token)
            except BadToken as error:
                raise Refusal(401, _UNAUTHORIZED) from error
            if len(self._opened) >= _OPENED_MAX:
                self._opened.clear()
            self._opened[digest] = opened
        return opened

    def _records(self, db: Db, opened: Opened) -> tuple[Row | None, Row | None]:
        """The root's record, by its signed id, and the nearest recorded ancestor's; a revoked ancestor comes first."""
        root = db.one(
            "SELECT t.*, o.name AS org_name FROM tokens t JOIN organizations o ON o.id = t.org_id WHERE t.id = ?",
            opened.claims.token_id,
        )
        later = opened.revocation_ids[1:]
        if not later:
            return root, root
        marks = ", ".join("?" * len(later))
        rows = db.all(f"SELECT * FROM tokens WHERE revocation_id IN ({marks})", *later)  # noqa: S608 - marks only
        by_depth = sorted(rows, key=lambda row: (bool(row["revoked_at"]), later.index(row["revocation_id"])))
        return root, by_depth[-1] if by_depth else root

    def authorize(self, who: Principal, action: str, resource: str, *, destructive: bool = False) -> None:
        """Refuse with 403, naming the missing capability; any living token may call whoami."""
        if resource == SELF:
            return
        capability = f"{resource}:{action}"
        if not permissions.is_permitted(who.role, action, resource):
            raise Refusal(403, f"missing capability {capability}: the token's role is {who.role}")
        if who.grant is None or who.grant.allows(action, resource, destructive=destructive):
            return
        how = " for a destructive call" if destructive else ""
        raise Refusal(403, f"missing capability {capability}{how}: the token is restricted")

    def authorize_payment(self, who: Principal, action: str, resource: str, method: str) -> None:
        """Refuse with 403 a payment method that the token's payment policy does not allow."""
        if who.grant is not None and not who.grant.allows(action, resource, method=method):
            raise Refusal(403, f"the token's payment policy does not allow {method}")

    def attenuate(self, db: Db, token: str, restrictions: Restrictions, name: str, parent: Row) -> Minted:
        """Append restrictions and record the result under its nearest recorded `parent`; 400 if no block fits."""
        source = self._open(self._genuine(db, token))
        code, values = permissions.make_checks(restrictions)
        try:
            text = self._seal.append(source, code, values)
            opened = self._seal.read(text)
        except BadToken as error:
            raise Refusal(400, "token: it cannot be restricted any further") from error
        child_id = str(uuid.uuid4())
        db.insert(
            "tokens",
            {
                "id": child_id,
                "org_id": parent["org_id"],
                "user_id": parent["user_id"],
                "name": name,
                "kind": "attenuated",
                "role": parent["role"],
                "revocation_id": opened.revocation_ids[-1],
                "root_token_id": source.claims.token_id,
                "parent_token_id": parent["id"],
                "attenuation_spec": permissions.make_spec(restrictions),
                "created_at": self._clock.now(parent["org_id"]),
                "expires_at": opened.expires_at,
            },
        )
        return Minted(child_id, text)

    def revoke_family(self, db: Db, token_id: str, revoked_at: datetime) -> int:
        """Revoke a token's root and all descendants; the number of recorded ones that this revoked."""
        row = db.one("SELECT id, root_token_id FROM tokens WHERE id = ?", token_id) or {"id": token_id}
        root = row.get("root_token_id") or row["id"]
        db.run("UPDATE tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", revoked_at, root)
        return db.run(
            "UPDATE tokens SET revoked_at = ? WHERE root_token_id = ? AND revoked_at IS NULL",
            revoked_at,
            root,
        )


def _digest_text(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _private_key(store: Store) -> str:
    """The lab's own key, made once per database; a reset keeps it."""
    with store.transaction() as db:
        row = db.one("SELECT private_key FROM signing_keys")
        if row is None:
            row = {"private_key": Seal.new_key()}
            db.insert("signing_keys", row)
        return str(row["private_key"])
