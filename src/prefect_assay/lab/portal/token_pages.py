"""Organization, Settings, Tokens: the portal's page on which members create and revoke tokens (contract 5.4)."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request, Response

from prefect_assay.lab.kernel import times
from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.kernel.store import Row
from prefect_assay.lab.portal.dependencies import (
    Form,
    Signed,
    TheLab,
    Visitor,
    go,
    sign_in_page,
    signed_in_page,
)
from prefect_assay.lab.requests.core import Lab
from prefect_assay.lab.tokens.registry import EXPIRY_DAYS
from prefect_assay.lab.tokens.sessions import Session

TOKENS: Final = "/portal/organization/settings/tokens/"
_NAME_MAX: Final = 200
_SHOWN_MAX: Final = 500

router = APIRouter()


def _fresh(request: Request) -> dict[str, dict[str, Any]]:
    """Tokens that were just created and not shown yet, by session; only in memory."""
    state = request.app.state
    if not hasattr(state, "fresh_tokens"):
        state.fresh_tokens = {}
    found: dict[str, dict[str, Any]] = state.fresh_tokens
    return found


Fresh = Annotated[dict[str, dict[str, Any]], Depends(_fresh)]


@router.get("/organization/settings/tokens/")
def tokens(lab: TheLab, visitor: Visitor, fresh: Fresh) -> Response:
    """The organisation's root tokens, newest first; the value of a new one once."""
    if visitor is None:
        return sign_in_page(follow=TOKENS)
    return signed_in_page(
        "tokens.html",
        visitor,
        title="Tokens",
        here=TOKENS,
        rows=_listing(lab, visitor),
        fresh=fresh.pop(visitor.id, None),
        may_change=visitor.user["role"] != "viewer",
        expiries=[(days, "1 year" if days == 365 else f"{days} days") for days in EXPIRY_DAYS],  # noqa: PLR2004
        name_max=_NAME_MAX,
    )


def _listing(lab: Lab, session: Session) -> list[Row]:
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


@router.post("/organization/settings/tokens/create")
def create(lab: TheLab, session: Signed, fields: Form, fresh: Fresh) -> Response:
    """Create a token; 403 for viewers, 400 for anything that the form does not offer."""
    _check_role(session)
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
    fresh[session.id] = {"name": name, "token": minted.token}
    return go(TOKENS)


@router.post("/organization/settings/tokens/{token_id}/revoke")
def revoke(lab: TheLab, session: Signed, token_id: str) -> Response:
    """Revoke a token and its family at once; 403 for viewers, 404 for another organisation's (contract 5.4)."""
    _check_role(session)
    org_id = session.user["org_id"]
    with lab.store.transaction() as db:
        if db.one("SELECT 1 FROM tokens WHERE id = ? AND org_id = ?", token_id, org_id) is None:
            raise Refusal(404, "no such token")
        lab.tokens.revoke_family(db, token_id, lab.clock.now(org_id))
    return go(TOKENS)


def _check_role(session: Session) -> None:
    if session.user["role"] == "viewer":
        raise Refusal(403, "viewers may look at tokens, and neither create nor revoke them")
