"""What the portal's signed-in pages share: the lab, the session cookie and forms."""

import hmac
from typing import Annotated, Final
from urllib.parse import parse_qs

from fastapi import Depends, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.portal import frame as pages_frame
from prefect_assay.lab.service.core import LabCore
from prefect_assay.lab.tokens import sessions
from prefect_assay.lab.tokens.sessions import Session

COOKIE: Final = "lab_session"
_PATH: Final = "/portal"
_FORM_MAX: Final = 20_000


def the_core(request: Request) -> LabCore:
    """The lab."""
    core: LabCore = request.app.state.core
    return core


Core = Annotated[LabCore, Depends(the_core)]


def session_or_none(core: Core, request: Request) -> Session | None:
    """Who is signed in."""
    with core.lab.store.transaction() as db:
        return sessions.find(db, request.cookies.get(COOKIE))


Visitor = Annotated[Session | None, Depends(session_or_none)]


async def form(request: Request) -> dict[str, str]:
    """The fields of a form; of a field given twice the first. A form that is far too long is refused with 400."""
    body = await request.body()
    if len(body) > _FORM_MAX:
        raise Refusal(400, "the form is too long")
    fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
    return {name: values[0] for name, values in fields.items()}


Form = Annotated[dict[str, str], Depends(form)]


async def signed_form(visitor: Visitor, fields: Form) -> Session:
    """The session that a form was made for; 403 without one."""
    if visitor is None or not hmac.compare_digest(fields.get("csrf", "").encode(), visitor.csrf.encode()):
        raise Refusal(403, "this form is not of your session; open the page again")
    return visitor


Signed = Annotated[Session, Depends(signed_form)]


def page(text: str, *form_targets: str) -> Response:
    """A page with the headers that all pages have."""
    return HTMLResponse(text, headers=pages_frame.headers(form_targets))


def go(path: str) -> Response:
    """To another page, which is then read."""
    return RedirectResponse(path, status_code=303, headers={"Cache-Control": "no-store"})


def sign_in(core: LabCore, response: Response, cookie: str) -> Response:
    """Hand the session to the browser; scripts and other sites' forms do not get it."""
    secure = core.lab.settings.base_url.startswith("https://")
    response.set_cookie(COOKIE, cookie, path=_PATH, httponly=True, samesite="lax", secure=secure)
    return response


def sign_out(response: Response) -> Response:
    """Take the session from the browser."""
    response.delete_cookie(COOKIE, path=_PATH, httponly=True, samesite="lax")
    return response
