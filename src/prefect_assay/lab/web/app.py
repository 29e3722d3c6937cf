"""The lab as one ASGI application: the API, its description, the control surface, the portal, sign-in and tools."""

import logging
from http import HTTPStatus

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.routing import Route

from prefect_assay.lab import api
from prefect_assay.lab.account import oauth
from prefect_assay.lab.control import actions as sim_actions
from prefect_assay.lab.control import deliveries as sim_deliveries
from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.kernel.settings import API_PREFIX
from prefect_assay.lab.portal import account_pages, experiment_pages, token_pages
from prefect_assay.lab.service.core import LabCore
from prefect_assay.lab.web.dispatcher import Dispatcher, error, refused
from prefect_assay.lab.web.edge import Edge
from prefect_assay.lab.web.tool_endpoint import ToolEndpoint

logger = logging.getLogger("prefect_assay.lab")


def create_app(core: LabCore) -> Edge:
    """The lab's ASGI application."""
    app = FastAPI(redirect_slashes=False, openapi_url=None)
    app.state.core = core
    _describe(app, core)
    app.include_router(sim_actions.router, prefix="/_sim")
    app.include_router(sim_deliveries.router, prefix="/_sim")
    for pages in (experiment_pages, account_pages, token_pages):
        app.include_router(pages.router, prefix="/portal")
    _handle_errors(app, core)
    edge = Edge(Dispatcher(core, app), core)
    sign_in = oauth.SignInEndpoint(core.lab)
    app.router.routes.append(Route("/mcp", ToolEndpoint(core, edge)))
    app.router.routes.extend(Route(path, sign_in) for path in oauth.PATHS)
    return edge


def _describe(app: FastAPI, core: LabCore) -> None:
    @app.get(f"{API_PREFIX}/openapi.json")
    def openapi(request: Request) -> Response:
        partner = _is_partner(core, request.headers.get("authorization"))
        body = api.rendered(core.lab.settings.words, partner=partner)
        return Response(body, media_type="application/json")

    @app.get("/.well-known/token-key")
    def token_key() -> dict[str, str]:
        """The key that tokens are signed with, for attenuating them offline; the contract has no place for it."""
        return {"public_key": core.lab.tokens.public_key, "token_prefix": core.lab.settings.token_prefix}


def _is_partner(core: LabCore, header: str | None) -> bool:
    """Whether to describe the partner-only routes (contract 1). An invalid token counts as no token."""
    try:
        return header is not None and core.lab.tokens.authenticate(header).role == "partner"
    except Refusal:
        return False


def _handle_errors(app: FastAPI, core: LabCore) -> None:
    @app.exception_handler(Refusal)
    async def refusal(request: Request, problem: Refusal) -> Response:
        return refused(core, request, problem)

    @app.exception_handler(HTTPException)
    async def not_routed(request: Request, problem: HTTPException) -> Response:
        known = problem.status_code != HTTPStatus.NOT_FOUND
        message = "method not allowed here" if known else "no such path"
        return error(core, request, problem.status_code, message, headers=problem.headers)

    @app.exception_handler(Exception)
    async def broken(request: Request, problem: Exception) -> Response:
        logger.error("the lab failed on %s %s", request.method, request.url.path, exc_info=problem)
        return error(core, request, 500, "internal server error")
