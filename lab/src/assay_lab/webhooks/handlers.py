"""The organization's webhooks: destinations for experiments without one of their own (service shapes).

The secret is never returned. Header values may be credentials: a caller that may change a webhook gets them, a reader
gets a mask. No host is looked up: a name that resolves to a private address passes.
"""

import re
import uuid
from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from assay_lab.kernel.refusals import Refusal
from assay_lab.kernel.store import Db, Row, decode_row
from assay_lab.requests import validation
from assay_lab.requests.core import Answer, Call, require_owned, uuid_or_none
from assay_lab.requests.schemas import CreateWebhook, ModifyWebhook
from assay_lab.requests.validation import Violation, is_old_number, is_private, read_address
from assay_lab.webhooks import delivery
from assay_lab.webhooks.delivery import MASK

_HEADERS_MAX: Final = 20
_HEADER_VALUE_MAX: Final = 4_096
_URL_MAX: Final = 2_048
# RFC 9110: a field name is a token; a value has no control characters and no spaces around it.
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?")
_HOST: Final = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9-]{1,63}(?<!-))*")
# Decided by the sender: framing, the connection, and the type of the body.
_RESERVED: Final = frozenset(
    {
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


def list_webhooks(call: Call) -> Answer:
    """GET /webhooks: a plain array, oldest first."""
    masked = not _may_change(call)
    with call.lab.store.transaction() as db:
        rows = db.all("SELECT * FROM webhooks WHERE org_id = ? ORDER BY seq", call.who.org_id)
    return Answer([_view_webhook(row, masked=masked) for row in rows])


def create_webhook(call: Call) -> Answer:
    """POST /webhooks."""
    request = validation.read_body(CreateWebhook, call.json(), partial(_find_violations, call))
    now = call.now()
    row: Row = {
        "id": str(uuid.uuid4()),
        "org_id": call.who.org_id,
        "url": request.url,
        "secret": request.secret,
        "headers": request.headers or {},
        "enabled": 1,
        "created_at": now,
        "updated_at": now,
    }
    with call.lab.store.transaction() as db:
        db.insert("webhooks", row)
        return Answer(_view_webhook(_find_webhook(db, call, row["id"])), 201)


def modify_webhook(call: Call) -> Answer:
    """PATCH /webhooks/{webhook_id}: changes the named fields, from the next attempt on."""
    raw = call.json()
    request, violations = validation.read_shape(ModifyWebhook, raw)
    if request is not None:
        violations += _find_violations(call, request)
    with call.lab.store.transaction() as db:
        row = _find_webhook(db, call, call.path["webhook_id"])
        validation.refuse_violations(violations)
        changes = _make_changes(row, raw)
        if "secret" in changes:
            before, _ = delivery.organization_secret(db, row["org_id"], row)
            changes["replaced_secret"] = before or call.lab.settings.deployment_secret
        if changes:
            db.update("webhooks", row["id"], **changes, updated_at=call.now())
        return Answer(_view_webhook(_find_webhook(db, call, row["id"])))


def delete_webhook(call: Call) -> Answer:
    """DELETE /webhooks/{webhook_id}, with its queued deliveries."""
    with call.lab.store.transaction() as db:
        row = _find_webhook(db, call, call.path["webhook_id"])
        db.run("DELETE FROM webhooks WHERE id = ?", row["id"])
        db.run("DELETE FROM outbox WHERE webhook_id = ?", row["id"])
    return Answer(None, 204)


def _make_changes(row: Row, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Null clears the secret; any other null leaves the field alone."""
    changes = {name: raw[name] for name in ("url", "headers") if raw.get(name) is not None}
    if raw.get("enabled") is not None:
        changes["enabled"] = int(raw["enabled"])
    if "secret" in raw and raw["secret"] != row["secret"]:
        changes["secret"] = raw["secret"]
    return {name: value for name, value in changes.items() if value != decode_row(row, "headers")[name]}


def _find_webhook(db: Db, call: Call, webhook_id: str) -> Row:
    return require_owned(db, call, "webhooks", uuid_or_none(webhook_id), "webhook")


def _may_change(call: Call) -> bool:
    try:
        call.lab.tokens.authorize(call.who, "update", "webhook", destructive=False)
    except Refusal:
        return False
    return True


def _view_webhook(row: Row, *, masked: bool = False) -> dict[str, Any]:
    headers = decode_row(row, "headers")["headers"]
    return {
        "id": row["id"],
        "url": row["url"],
        "secret_set": row["secret"] is not None,
        "headers": dict.fromkeys(headers, MASK) if masked else headers,
        "enabled": bool(row["enabled"]),
        "created_at": row["created_at"],
        "updated_at": row["updated_at"],
    }


def _find_violations(call: Call, request: CreateWebhook | ModifyWebhook) -> list[Violation]:
    settings = call.lab.settings
    cause = (
        _url_problem(request.url, private=settings.allow_http_webhooks) if request.url is not None else None
    )
    violations = [Violation(f"url: must be a public HTTPS URL{cause}")] if cause is not None else []
    return violations + _header_violations(request.headers or {}, settings.words.header("").lower())


def _url_problem(url: str, *, private: bool) -> str | None:
    """What keeps an address from being public HTTPS. `private` allows private hosts, also by http."""
    host = _read_host(url)
    if host is None:
        return ""
    inside = is_private(host)
    scheme = urlsplit(url).scheme
    if (scheme == "https" and (private or not inside)) or (scheme == "http" and private and inside):
        return None
    return f"; this is {'a private or loopback host' if inside and scheme == 'https' else 'not HTTPS'}"


def _read_host(url: str) -> str | None:
    """The host, lower case; None for an address to which nothing can be delivered."""
    if len(url) > _URL_MAX or not re.fullmatch(r"[\x21-\x7e]+", url):
        return None
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not host or port == 0 or "@" in parts.netloc:  # a password does not belong into an address
        return None
    host = host.removesuffix(".")
    if read_address(host) is not None:
        return host
    return host if _HOST.fullmatch(host) and not is_old_number(host) else None


def _header_violations(headers: Mapping[str, str], own_prefix: str) -> list[Violation]:
    violations: list[Violation] = []
    if len(headers) > _HEADERS_MAX:
        violations.append(Violation(f"headers: at most {_HEADERS_MAX}", 422))
    if len({name.lower() for name in headers}) != len(headers):
        violations.append(Violation("headers: a name is given twice", 422))
    for name, value in headers.items():
        if cause := _header_problem(name, value, own_prefix):
            violations.append(Violation(f"headers: {name[:64]!r} {cause}", 422))
    return violations


def _header_problem(name: str, value: str, own_prefix: str) -> str | None:
    if not _NAME.fullmatch(name):
        return "is not the name of a header"
    if name.lower() in _RESERVED or name.lower().startswith((own_prefix, "proxy-")):
        return "belongs to the service"
    if value == MASK:
        return "has the mask of a hidden value, not a value"
    if len(value) > _HEADER_VALUE_MAX or not _VALUE.fullmatch(value):
        return f"takes at most {_HEADER_VALUE_MAX} printable ASCII characters, without line breaks"
    return None
