"""What the portal's routes depend on: the lab, the session of a cookie, forms of that session; and their answers."""

import hmac
from collections.abc import Iterable
from typing import Annotated, Any, Final
from urllib.parse import parse_qs

from fastapi import Depends, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.portal import rendering
from prefect_assay.lab.requests.core import Lab
from prefect_assay.lab.tokens import sessions
from prefect_assay.lab.tokens.sessions import Session

COOKIE: Final = "lab_session"
_PATH: Final = "/portal"
_FORM_MAX: Final = 20_000


def _lab(request: Request) -> Lab:
    lab: Lab = request.app.state.core.lab
    return lab


TheLab = Annotated[Lab, Depends(_lab)]


def _session(lab: TheLab, request: Request) -> Session | None:
    with lab.store.transaction() as db:
        return sessions.find(db, request.cookies.get(COOKIE))


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
    return HTMLResponse(text, headers=rendering.headers(form_targets))


def signed_in_page(
    template: str, session: Session, *, form_targets: Iterable[str] = (), **context: Any
) -> Response:
    """A page with the bar of a signed-in person."""
    context |= {"user": session.user, "csrf": session.csrf}
    text = rendering.render(template, form_targets=form_targets, **context)
    return page(text, form_targets=form_targets)


def sign_in_page(*, follow: str) -> Response:
    """A field for the sign-in link, then on to `follow`."""
    return page(rendering.render("sign_in.html", title="Sign in", follow=follow))


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
