"""Organization, Settings, Tokens: what the portal's page of tokens does (contract 5.4)."""

from typing import Any, Final

from fastapi import FastAPI

from prefect_assay.lab.kernel import times
from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.kernel.store import Row
from prefect_assay.lab.requests.core import Lab
from prefect_assay.lab.tokens.registry import EXPIRY_DAYS
from prefect_assay.lab.tokens.sessions import Session

Fresh = dict[str, Any]

_NAME_MAX: Final = 200
_SHOWN_MAX: Final = 500


def fresh(app: FastAPI) -> dict[str, Fresh]:
    """Tokens that were just made and not shown yet, by session; only in memory."""
    if not hasattr(app.state, "fresh_tokens"):
        app.state.fresh_tokens = {}
    found: dict[str, Fresh] = app.state.fresh_tokens
    return found


def listing(lab: Lab, session: Session) -> list[Row]:
    """The organisation's root tokens, newest first, with their state at lab time."""
    org_id = session.user["org_id"]
    now = times.stamp(lab.clock.now(org_id))
    with lab.store.transaction() as db:
        rows = db.all(
            "SELECT t.id, t.name, t.role, t.kind, t.created_at, t.expires_at, t.revoked_at,"
            " (SELECT count(*) FROM tokens c WHERE c.root_token_id = t.id) AS children"
            " FROM tokens t WHERE t.org_id = ? AND t.root_token_id IS NULL"
            " ORDER BY t.revoked_at IS NOT NULL, t.created_at DESC, t.seq DESC LIMIT ?",
            org_id,
            _SHOWN_MAX,
        )
    return [row | {"state": _state(row, now)} for row in rows]


def _state(row: Row, now: str) -> str:
    if row["revoked_at"]:
        return "revoked"
    return "active" if row["expires_at"] > now else "expired"


def create(lab: Lab, session: Session, fields: dict[str, str]) -> Fresh:
    """A new token from a form; 403 for viewers, 400 for anything that the form does not offer."""
    _may_change(session)
    name, role, days = fields.get("name", "").strip(), fields.get("role"), fields.get("days", "")
    if not name or len(name) > _NAME_MAX:
        raise Refusal(400, f"name: 1 to {_NAME_MAX} characters")
    if role not in ("member", "viewer"):
        raise Refusal(400, "role: member or viewer")
    if days not in {str(choice) for choice in EXPIRY_DAYS}:
        raise Refusal(400, f"days: one of {', '.join(str(choice) for choice in EXPIRY_DAYS)}")
    with lab.store.transaction() as db:
        minted = lab.tokens.mint(
            db,
            org_id=session.user["org_id"],
            role="member" if role == "member" else "viewer",
            name=name,
            days=int(days),
            user_id=session.user["id"],
            kind="portal",
        )
    return {"name": name, "token": minted.token}


def revoke(lab: Lab, session: Session, token_id: str) -> None:
    """Revoke a token of the organisation with its family; 403 for viewers, 404 for another organisation's."""
    _may_change(session)
    org_id = session.user["org_id"]
    with lab.store.transaction() as db:
        if db.one("SELECT 1 FROM tokens WHERE id = ? AND org_id = ?", token_id, org_id) is None:
            raise Refusal(404, "no such token")
        lab.tokens.revoke_family(db, token_id, lab.clock.now(org_id))


def _may_change(session: Session) -> None:
    if session.user["role"] == "viewer":
        raise Refusal(403, "viewers may look at tokens, and neither create nor revoke them")
