"""Templates, policy, session and forms of all pages. Every value is escaped; no page has a script or loads anything."""

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable
from typing import Annotated, Any, Final
from urllib.parse import parse_qs, urlsplit

from fastapi import Depends, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from assay_lab.kernel.refusals import Refusal
from assay_lab.requests.core import Lab
from assay_lab.tokens import sessions
from assay_lab.tokens.sessions import Session

COOKIE: Final = "lab_session"
REFRESH_S: Final = 5
_PATH: Final = "/portal"
_FORM_MAX: Final = 20_000
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[A-Za-z0-9.:\[\]-]*")
_TONES: Final = {
    "good": {"done", "accepted", "paid", "strong"},
    "bad": {"canceled", "rejected", "expired", "void", "uncollectible", "stale", "weak"},
    "wait": {"open", "pending", "draft", "quote_sent", "medium"},
}


def words(value: str) -> str:
    """`in_queue` as `in queue`."""
    return value.replace("_", " ")


def chip(status: str) -> Markup:
    """A status as a coloured label."""
    tone = next((tone for tone, values in _TONES.items() if status in values), "")
    return Markup('<span class="chip {}">{}</span>').format(tone, words(status))


def time(stamp: str) -> str:
    """`2026-03-01T12:00:00Z` as `2026-03-01 12:00 UTC`."""
    return f"{stamp[:10]} {stamp[11:16]} UTC"


def day(stamp: str) -> str:
    """Only the date."""
    return stamp[:10]


def money(cents: int) -> str:
    """Cents as dollars."""
    return f"${cents / 100:,.2f}"


_TEMPLATES: Final = Environment(
    loader=PackageLoader("assay_lab.portal"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    finalize=lambda value: "" if value is None else value,
)
_TEMPLATES.filters |= {"words": words, "chip": chip, "time": time, "day": day, "money": money}
STYLE: Final = (_TEMPLATES.loader or PackageLoader("")).get_source(_TEMPLATES, "style.css")[0]
_STYLE_HASH: Final = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
_TEMPLATES.globals |= {"style": Markup(STYLE), "refresh_seconds": REFRESH_S}  # noqa: S704 - our own style sheet


def render(template: str, *, title: str, form_targets: Iterable[str] = (), **context: Any) -> str:
    """A whole page, with `refresh` reloaded every few seconds; a form may also lead to `form_targets`."""
    return _TEMPLATES.get_template(template).render(title=title, policy=_policy(form_targets), **context)


def headers(form_targets: Iterable[str] = ()) -> dict[str, str]:
    """HTTP headers of every page."""
    return {
        "Cache-Control": "no-store",
        "Content-Security-Policy": f"{_policy(form_targets)}; frame-ancestors 'none'",
        # The key in an address opens the page: it must not reach another site.
        "Referrer-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
    }


def _policy(form_targets: Iterable[str]) -> str:
    """Allow only the one style sheet, even if an escape were forgotten."""
    targets = " ".join(["'self'", *(origin for target in form_targets if (origin := _origin(target)))])
    return f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action {targets}; base-uri 'none'"


def _origin(url: str) -> str:
    """`https://host:1` of an address, only its scheme where it has no host, and nothing of a malformed one."""
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    if parts.scheme not in ("http", "https"):
        return f"{parts.scheme}:" if re.fullmatch(r"[a-z][a-z0-9+.-]*", parts.scheme) else ""
    return origin if _ORIGIN.fullmatch(origin) else ""


def _lab(request: Request) -> Lab:
    lab: Lab = request.app.state.core.lab
    return lab


TheLab = Annotated[Lab, Depends(_lab)]


def _session(lab: TheLab, request: Request) -> Session | None:
    with lab.store.transaction() as db:
        return sessions.find_session(db, request.cookies.get(COOKIE))


Visitor = Annotated[Session | None, Depends(_session)]


async def _form(request: Request) -> dict[str, str]:
    """The first value of each field; 400 for an oversized form."""
    body = await request.body()
    if len(body) > _FORM_MAX:
        raise Refusal(400, "the form is too long")
    fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
    return {name: values[0] for name, values in fields.items()}


Form = Annotated[dict[str, str], Depends(_form)]


async def _signed_form(visitor: Visitor, fields: Form) -> Session:
    """The session that a form belongs to; 403 without one."""
    if visitor is None or not hmac.compare_digest(fields.get("csrf", "").encode(), visitor.csrf.encode()):
        raise Refusal(403, "this form does not belong to your session; open the page again")
    return visitor


Signed = Annotated[Session, Depends(_signed_form)]


def page(text: str, *, form_targets: Iterable[str] = ()) -> Response:
    """A rendered page with the headers of all pages."""
    return HTMLResponse(text, headers=headers(form_targets))


def signed_in_page(
    template: str, session: Session, *, form_targets: Iterable[str] = (), **context: Any
) -> Response:
    """A page with the bar of a signed-in person."""
    context |= {"user": session.user, "csrf": session.csrf}
    text = render(template, form_targets=form_targets, **context)
    return page(text, form_targets=form_targets)


def sign_in_page(*, follow: str) -> Response:
    """A field for the sign-in link, then on to `follow`."""
    return page(render("sign_in.html", title="Sign in", follow=follow))


def go(path: str) -> Response:
    """Redirect a form to a page."""
    return RedirectResponse(path, status_code=303, headers={"Cache-Control": "no-store"})


def sign_in(lab: Lab, response: Response, cookie: str) -> Response:
    """Set the session's cookie, out of reach of scripts and other sites' forms."""
    secure = lab.settings.base_url.startswith("https://")
    response.set_cookie(COOKIE, cookie, path=_PATH, httponly=True, samesite="lax", secure=secure)
    return response


def sign_out(response: Response) -> Response:
    """Delete the session's cookie."""
    response.delete_cookie(COOKIE, path=_PATH, httponly=True, samesite="lax")
    return response
