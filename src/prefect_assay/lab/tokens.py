"""Bearer tokens: minting and checking (contract 5). Everything about their inside stays in this module.

The rest of the lab knows only `authenticate(header) -> Principal`, so that another kind of token can replace
this one. A token has the shape <prefix>_<slug><encoded>; only its SHA-256 is stored (contract 5.4).
"""

import hashlib
import secrets
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from prefect_assay.lab import times
from prefect_assay.lab.clock import Clock
from prefect_assay.lab.refusals import Refusal
from prefect_assay.lab.store import Db, Store

Role = Literal["member", "viewer"]

_BEARER = "bearer "


@dataclass(frozen=True, slots=True)
class Principal:
    """Who calls: an organisation, and what the token allows there."""

    org_id: str
    org_name: str
    token_id: str
    role: Role
    expires_at: str

    @property
    def permissions(self) -> list[str]:
        """Actions this role allows (contract 5.3: members read and write, viewers read)."""
        return ["list", "read", "create", "update"] if self.role == "member" else ["list", "read"]


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def mint(
    db: Db,
    *,
    org_id: str,
    role: Role,
    name: str,
    prefix: str,
    now: datetime,
    days: float = 365,
    token: str | None = None,
) -> str:
    """Make a token, or enter the given one; it is returned once and never stored."""
    org = db.one("SELECT slug FROM organizations WHERE id = ?", org_id)
    value = token or f"{prefix}_{org['slug'] if org else ''}{secrets.token_urlsafe(32)}"
    db.insert(
        "tokens",
        {
            "id": str(uuid.uuid4()),
            "org_id": org_id,
            "name": name,
            "role": role,
            "digest": _digest(value),
            "created_at": now,
            "expires_at": times.later(now, days=days),
        },
    )
    return value


def forget(db: Db, token: str) -> None:
    """Remove a token from the table."""
    db.run("DELETE FROM tokens WHERE digest = ?", _digest(token))


class Tokens:
    """Checks the Authorization header of every request."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def authenticate(self, header: str | None) -> Principal:
        """Who calls.

        Raises:
            Refusal: 401, without saying which of missing, unknown, expired or revoked it is.
        """
        token = header[len(_BEARER) :].strip() if header and header.lower().startswith(_BEARER) else ""
        with self._store.transaction() as db:
            row = db.one(
                "SELECT t.*, o.name AS org_name FROM tokens t JOIN organizations o ON o.id = t.org_id"
                " WHERE digest = ?",
                _digest(token),
            )
            if (
                not token
                or row is None
                or row["revoked_at"]
                or row["expires_at"] <= times.stamp(self._clock.now(row["org_id"]))
            ):
                raise Refusal(401, "missing or invalid token")
        return Principal(row["org_id"], row["org_name"], row["id"], row["role"], row["expires_at"])
