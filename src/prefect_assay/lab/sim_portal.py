"""The control surface's part on the portal: sign-in links of any user, and the end of all sessions."""

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from prefect_assay.lab import sessions
from prefect_assay.lab.refusals import Refusal
from prefect_assay.lab.service import LabCore
from prefect_assay.lab.sim_base import Core, answer, body, known

router = APIRouter()


@router.post("/sign-in-links")
async def sign_in_links(core: Core, request: Request) -> Response:
    """`{email}`: the link that signs this user in."""
    wanted = await body(request)
    known(wanted, "email")
    return answer({"portal_url": await run_in_threadpool(link, core, str(wanted.get("email", "")))})


def link(core: LabCore, email: str) -> str:
    """The user's sign-in link.

    Raises:
        Refusal: 404 when there is no such user.
    """
    with core.lab.store.transaction() as db:
        if db.one("SELECT 1 FROM users WHERE email = ?", email.lower()) is None:
            raise Refusal(404, f"no user {email!r}")
    return sessions.sign_in_link(core.lab.settings, email)


@router.delete("/sessions")
async def end_sessions(core: Core) -> Response:
    """Let every portal session expire now, and with it the tokens of tool clients that signed in."""

    def expire() -> int:
        with core.lab.store.transaction() as db:
            return db.run("UPDATE portal_sessions SET expires_at = 0 WHERE expires_at > 0")

    return answer({"ended": await run_in_threadpool(expire)})
