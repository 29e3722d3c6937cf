"""Handlers of the caller's identity, tokens, health and feedback (contract 4.6; service shapes, Tokens and identity)."""

import secrets
import sqlite3
from typing import Any, Final

from prefect_assay.lab.kernel import times
from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.kernel.store import Db, Row, load
from prefect_assay.lab.requests import lists, validation
from prefect_assay.lab.requests.core import Answer, Call
from prefect_assay.lab.requests.lists import Column, Listing
from prefect_assay.lab.requests.schemas import SubmitFeedback
from prefect_assay.lab.tokens.permissions import AttenuateToken

# Revoked tokens are left out: the published row has no field that distinguishes them.
TOKENS: Final = Listing(
    source="tokens",
    columns={
        "id": Column("tokens.id", "uuid"),
        "name": Column("name"),
        "kind": Column("kind"),
        "parent_token_id": Column("parent_token_id", "uuid"),
        "root_token_id": Column("root_token_id", "uuid"),
        "created_at": Column("created_at", "timestamp"),
        "expires_at": Column("expires_at", "timestamp"),
    },
    search=("name",),
)
_ALIVE: Final = lists.Sql("tokens.revoked_at IS NULL")


def whoami(call: Call) -> Answer:
    """GET /whoami."""
    who = call.who
    organization = {"id": who.org_id, "name": who.org_name, "role": who.role, "active": True}
    return Answer(
        {
            "user_id": who.user_id,
            "organizations": [organization],
            "active_organization_id": who.org_id,
            "permissions": who.permissions,
            "token_expires_at": who.expires_at,
        }
    )


def _token(row: Row) -> dict[str, Any]:
    row = load(row, "attenuation_spec")
    names = ("id", "name", "kind", "parent_token_id", "root_token_id", "attenuation_spec")
    return {name: row[name] for name in (*names, "created_at", "expires_at")}


def listing(call: Call) -> Answer:
    """GET /tokens: the organisation's tokens, flat, newest first."""
    return lists.page(call, TOKENS, _token, only=(_ALIVE,))


def attenuate(call: Call) -> Answer:
    """POST /tokens/attenuate: the text of the token in the body proves that the caller holds it."""
    wanted = validation.read(AttenuateToken, call.json())
    with call.lab.store.transaction() as db:
        source = _held(call, db, wanted.token)
        named = str(wanted.attenuated_parent_token_id) if wanted.attenuated_parent_token_id else None
        expected = source["id"] if source["parent_token_id"] else None
        if named != expected:
            raise Refusal(400, _parent_hint(expected))
        expires_at = wanted.attenuation.expires_at
        if expires_at is not None and expires_at <= call.now():
            raise Refusal(400, f"attenuation.expires_at: {times.stamp(expires_at)} is in the past")
        child = call.lab.tokens.attenuate(db, wanted.token, wanted.attenuation, wanted.name, source)
    return Answer({"id": child.id, "token": child.token}, 201)


def _held(call: Call, db: Db, token: str) -> Row:
    """Record of the token to restrict, or of its nearest recorded ancestor."""
    try:
        holder = call.lab.tokens.principal(db, token)
    except Refusal as error:
        if error.status != 401:  # noqa: PLR2004 - other refusals do not concern the body
            raise
        raise Refusal(400, "token: it is not valid") from error
    if holder.org_id != call.who.org_id:
        raise Refusal(403, "token: it belongs to another organization")
    row = db.one("SELECT * FROM tokens WHERE id = ?", holder.token_id)
    if row is None:
        raise Refusal(400, "token: it is not valid")
    return row


def _parent_hint(expected: str | None) -> str:
    if expected is None:
        return "attenuated_parent_token_id: leave it out, the token was not attenuated by the service"
    return f"attenuated_parent_token_id: the token was attenuated, give its record's id ({expected})"


def revoke(call: Call) -> Answer:
    """POST /tokens/revoke: the calling token's whole family. Of two simultaneous calls both report the first's time."""
    root_id = call.who.root_token_id
    with call.lab.store.transaction() as db:
        children = call.lab.tokens.revoke_family(db, root_id, call.now())
        row = db.one("SELECT revoked_at FROM tokens WHERE id = ?", root_id) or {}
    return Answer({"token_id": root_id, "revoked_at": row.get("revoked_at"), "children_revoked": children})


def health(_call: Call) -> Answer:
    """GET /info/health: the lab answers."""
    return Answer({"status": "ok"})


def health_of_database(call: Call) -> Answer:
    """GET /info/health-db: 200 when the database answers, 503 when it does not."""
    try:
        with call.lab.store.transaction() as db:
            db.one("SELECT count(*) AS n FROM organizations")
    except sqlite3.Error as error:
        raise Refusal(503, "the database does not answer", extra={"db": "unavailable"}) from error
    return Answer({"status": "ok", "db": "ok"})


def feedback(call: Call) -> Answer:
    """POST /feedback/submit. Every submission is kept, also one about the same request."""
    wanted = validation.read(SubmitFeedback, call.json())
    reference = f"fb_{secrets.token_hex(8)}"
    with call.lab.store.transaction() as db:
        db.insert(
            "feedback",
            {
                "id": reference,
                "org_id": call.who.org_id,
                "created_at": call.now(),
                "content": wanted.model_dump(mode="json"),
            },
        )
    return Answer({"reference": reference, "message": "thank you for your feedback"}, 201)
