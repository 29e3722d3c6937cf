"""The portal's own pages: signing in, the organisation's experiments, its tokens, and a tool client's request.

Pure functions from records to HTML, as in `pages`. Every form carries the session's CSRF value.
"""

from collections.abc import Sequence
from html import escape
from typing import Any, Final
from urllib.parse import urlsplit

from prefect_assay.lab.portal import frame

Record = dict[str, Any]

EXPIRIES: Final = ((7, "7 days"), (30, "30 days"), (90, "90 days"), (365, "1 year"))  # contract 5.4
TOKENS: Final = "/portal/organization/settings/tokens/"
_NAME_MAX: Final = 200


def sign_in_page(*, follow: str) -> str:
    """For a visitor without a session: a field for the sign-in link, then on to `follow`."""
    body = (
        '<h1>Sign in</h1><p class="sub">The lab prints a sign-in link when it starts.</p>'
        '<section><form method="post" action="/portal/sign-in/">'
        '<input name="link" type="password" required placeholder="Sign-in link" aria-label="Sign-in link"'
        f' autocomplete="off">{_hidden("follow", follow)}<button>Sign in</button></form></section>'
    )
    return frame.page("Sign in", body)


def greeting_page(user: Record) -> str:
    """Behind a sign-in link. Only the button begins a session: a link may be loaded by anything."""
    body = (
        f'<h1>{frame.text(user["org_name"])}</h1><p class="sub">{frame.text(user["email"])}, {frame.text(user["role"])}</p>'
        '<section><form method="post" action="./"><button>Sign in</button></form></section>'
    )
    return frame.page("Sign in", body)


def experiments_page(user: Record, csrf: str, rows: Sequence[Record], *, total: int, offset: int) -> str:
    """The organisation's experiments, newest first, without the `offset` newer ones.

    Rows have `code`, `name`, `experiment_type`, `status`, `results_status`, `created_at`, `portal_key`, and, where
    something waits for the customer, `quote_key` or `invoice_key`.
    """
    cells = "".join(_experiment(row) for row in rows)
    table = (
        "<table><tr><th>Code</th><th>Name</th><th>Type</th><th>Status</th><th>Created</th><th></th></tr>"
        f"{cells}</table>"
        if rows
        else '<p class="note">No experiments yet. They appear when they are ordered through the API.</p>'
    )
    older, newer = offset + len(rows), max(0, offset - len(rows))
    links = (f'<a href="/portal/?offset={newer}">Newer</a> ' if offset else "") + (
        f'<a href="/portal/?offset={older}">Older</a>' if older < total else ""
    )
    shown = f"{offset + 1}&ndash;{older} of {total}. " if rows else ""
    body = f'<h1>Experiments</h1><section>{table}</section><p class="note">{shown}{links}</p>'
    return frame.page("Experiments", body, bar=_bar(user, csrf, here="/portal/"))


def _experiment(row: Record) -> str:
    todo = ""
    if row.get("quote_key"):
        todo = f'<a href="/portal/quotes/{escape(row["quote_key"])}/">Quote</a>'
    elif row.get("invoice_key"):
        todo = f'<a href="/portal/invoices/{escape(row["invoice_key"])}/">Invoice</a>'
    elif row.get("results_status") not in (None, "none"):
        todo = f"Results: {frame.text(row['results_status'])}"
    link = f'<a href="/portal/experiments/{escape(row["portal_key"])}/">{frame.text(row["code"])}</a>'
    return (
        f'<tr><td>{link}</td><td class="wide">{frame.text(row["name"])}</td>'
        f"<td>{frame.text(frame.words(row['experiment_type']))}</td><td>{frame.chip(row['status'])}</td>"
        f"<td>{frame.day(row['created_at'])}</td><td>{todo}</td></tr>"
    )


def tokens_page(user: Record, csrf: str, rows: Sequence[Record], fresh: Record | None) -> str:
    """Organization, Settings, Tokens (contract 5.4); only members create and revoke.

    Rows have `id`, `name`, `role`, `kind`, `created_at`, `expires_at`, `state` (`active`, `expired`, `revoked`) and
    `children`, the number of restricted tokens made of it. `fresh` has `name` and `token` of a token to show once.
    """
    may_change = user["role"] != "viewer"
    shown = (
        f'<section class="fresh"><h2>{frame.text(fresh["name"])}</h2><p class="note">Copy the token now. It cannot be'
        f" shown again.</p><pre>{frame.text(fresh['token'])}</pre></section>"
        if fresh
        else ""
    )
    cells = "".join(_token(row, csrf, may_change=may_change) for row in rows)
    body = (
        f'<h1>Tokens</h1><p class="sub">{frame.text(user["org_name"])} · Organization · Settings</p>{shown}'
        + (_new_token(csrf) if may_change else "")
        + "<section><table><tr><th>Name</th><th>Role</th><th>From</th><th>Created</th><th>Expires</th><th>State</th>"
        f"<th></th></tr>{cells}</table></section>"
    )
    return frame.page("Tokens", body, bar=_bar(user, csrf, here=TOKENS))


def _new_token(csrf: str) -> str:
    lives = "".join(f'<option value="{days}">{label}</option>' for days, label in EXPIRIES)
    return (
        f'<section><h2>New token</h2><form method="post" action="{TOKENS}create">{_csrf(csrf)}'
        f'<input name="name" required maxlength="{_NAME_MAX}" placeholder="Name" aria-label="Name" autocomplete="off">'
        '<label>Role <select name="role"><option value="member">Member</option>'
        f'<option value="viewer">Viewer</option></select></label><label>Expires after <select name="days">{lives}'
        "</select></label><button>Create token</button></form></section>"
    )


def _token(row: Record, csrf: str, *, may_change: bool) -> str:
    revoke = (
        f'<form method="post" action="{TOKENS}{escape(row["id"])}/revoke">{_csrf(csrf)}'
        '<button class="quiet">Revoke</button></form>'
        if may_change and row["state"] == "active"
        else ""
    )
    family = f' <span class="note">and {row["children"]} restricted</span>' if row["children"] else ""
    look = "" if row["state"] == "active" else ' class="gone"'
    return (
        f'<tr{look}><td class="wide">{frame.text(row["name"])}{family}</td><td>{frame.text(row["role"])}</td>'
        f"<td>{frame.text(row['kind'])}</td><td>{frame.day(row['created_at'])}</td>"
        f"<td>{frame.day(row['expires_at'])}</td><td>{frame.text(row['state'])}</td><td>{revoke}</td></tr>"
    )


def connect_page(user: Record, csrf: str, *, client: str, redirect_uri: str, ends: str) -> str:
    """A tool client asks for access in the signed-in person's name (contract 5.7).

    The name of the client is its own claim. `ends` is when the session ends.
    """
    parts = urlsplit(redirect_uri)
    body = (
        f'<h1>Connect {frame.text(client)}?</h1><p class="sub">The answer goes to '
        f"<strong>{frame.text(parts.netloc or parts.scheme)}</strong></p><section><p>It may do everything that "
        f"{frame.text(user['email'])} ({frame.text(user['role'])}) may do in {frame.text(user['org_name'])}, until you sign "
        f'out or {frame.time(ends)}.</p><form method="post" action="./">{_csrf(csrf)}'
        '<button name="decision" value="allow">Allow</button>'
        '<button class="quiet" name="decision" value="deny">Deny</button></form></section>'
    )
    return frame.page("Connect", body, bar=_bar(user, csrf, here=""), form_targets=[redirect_uri])


def _bar(user: Record, csrf: str, *, here: str) -> str:
    links = "".join(
        f'<a href="{path}"{" class=here" if path == here else ""}>{label}</a>'
        for path, label in (("/portal/", "Experiments"), (TOKENS, "Tokens"))
    )
    return (
        f'<nav><div><strong>{frame.text(user["org_name"])}</strong>{links}<span class="right">{frame.text(user["email"])}'
        f'</span><form method="post" action="/portal/sign-out">{_csrf(csrf)}<button>Sign out</button></form></div></nav>'
    )


def _csrf(value: str) -> str:
    return _hidden("csrf", value)


def _hidden(name: str, value: str) -> str:
    return f'<input type="hidden" name="{name}" value="{escape(value)}">'
