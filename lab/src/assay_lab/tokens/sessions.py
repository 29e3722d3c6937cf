"""Browser sessions of the portal, and the sign-in links that begin them (contract 5.4 and 5.7).

A link is signed, not stored, so that a reset lab takes it again. Sessions run on real time; only digests are stored.
"""

import hashlib
import hmac
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from assay_lab.kernel.settings import LabSettings
from assay_lab.kernel.store import Db, Row

_SESSION_SECONDS: Final = 12 * 3600.0  # of real time (contract 5.7)


@dataclass(frozen=True, slots=True)
class Session:
    """A signed-in person. `id`, the digest of the cookie, is in its tokens' claims; every form carries `csrf`."""

    id: str
    user: dict[str, Any]
    csrf: str = field(repr=False)
    expires_at: float

    @property
    def ends(self) -> str:
        """When it expires, as ISO text."""
        return datetime.fromtimestamp(self.expires_at, UTC).isoformat()


def sign_in_link(settings: LabSettings, email: str) -> str:
    """The address that signs this user in; it is as good as a password."""
    name = urlsafe_b64encode(email.lower().encode()).decode().rstrip("=")
    return f"{settings.base_url}/portal/sign-in/{name}.{_sign_email(settings, email)}/"


def user_of(settings: LabSettings, db: Db, key: str) -> Row | None:
    """The user whose sign-in link ends in this key."""
    name, _, signature = key.partition(".")
    try:
        email = urlsafe_b64decode(name + "=" * (-len(name) % 4)).decode()
    except ValueError:
        return None
    if not hmac.compare_digest(signature.encode(), _sign_email(settings, email).encode()):
        return None
    return db.one(f"{_USERS} WHERE u.email = ?", email.lower())


def begin_session(db: Db, user: Row) -> str:
    """A session for the user; the value of its cookie."""
    cookie = secrets.token_urlsafe(32)
    expires_at = time.time() + _SESSION_SECONDS
    row = {"id": digest_secret(cookie), "user_id": user["id"], "csrf": secrets.token_urlsafe(24)}
    db.insert("portal_sessions", row | {"expires_at": expires_at})
    return cookie


def find_session(db: Db, cookie: str | None) -> Session | None:
    """The living session of a cookie."""
    return by_id(db, digest_secret(cookie)) if cookie else None


def by_id(db: Db, session_id: str) -> Session | None:
    """The session, if it has not ended."""
    row = db.one("SELECT * FROM portal_sessions WHERE id = ? AND expires_at > ?", session_id, time.time())
    user = db.one(f"{_USERS} WHERE u.id = ?", row["user_id"]) if row else None
    return Session(row["id"], user, row["csrf"], row["expires_at"]) if row and user else None


def is_alive(db: Db, session_id: str) -> bool:
    """Whether the session still runs: its tokens end with it (contract 5.7)."""
    sql = "SELECT 1 FROM portal_sessions WHERE id = ? AND expires_at > ?"
    return db.one(sql, session_id, time.time()) is not None


def end_session(db: Db, session_id: str) -> None:
    """Delete the session; its tokens end with it."""
    db.run("DELETE FROM portal_sessions WHERE id = ?", session_id)


_USERS = (
    "SELECT u.id, u.email, u.role, u.org_id, o.name AS org_name"
    " FROM users u JOIN organizations o ON o.id = u.org_id"
)


def _sign_email(settings: LabSettings, email: str) -> str:
    message = f"sign-in {email.lower()}".encode()
    return hmac.new(settings.portal_secret.encode(), message, hashlib.sha256).hexdigest()


def digest_secret(secret: str) -> str:
    """What is stored of a cookie, a key or a code."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
