"""The web layer: the API, its description, the control surface and the portal as one ASGI application."""

import json
import logging
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.routing import Route as ASGIRoute

from prefect_assay.lab import openapi
from prefect_assay.lab.account import oauth_endpoint
from prefect_assay.lab.account.oauth_endpoint import SignInEndpoint
from prefect_assay.lab.control import actions as sim_actions
from prefect_assay.lab.control import deliveries as sim_deliveries
from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.kernel.settings import API_PREFIX
from prefect_assay.lab.portal import account_pages as portal_account
from prefect_assay.lab.portal import experiment_pages as portal
from prefect_assay.lab.service.api import Api
from prefect_assay.lab.service.core import LabCore
from prefect_assay.lab.service.edge import Edge
from prefect_assay.lab.tools.endpoint import ToolEndpoint

logger = logging.getLogger("prefect_assay.lab")


def create_app(core: LabCore) -> Edge:
    """The lab's ASGI application."""
    app = FastAPI(
        title="Protein characterization service (local lab)",
        redirect_slashes=False,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
    )
    app.state.core = core
    app.add_api_route(f"{API_PREFIX}/openapi.json", _openapi(core), methods=["GET"], include_in_schema=False)
    app.include_router(sim_actions.router, prefix="/_sim", include_in_schema=False)
    app.include_router(sim_deliveries.router, prefix="/_sim", include_in_schema=False)
    app.include_router(portal.router, prefix="/portal", include_in_schema=False)
    app.include_router(portal_account.router, prefix="/portal", include_in_schema=False)
    app.add_api_route("/.well-known/token-key", _token_key(core), methods=["GET"], include_in_schema=False)
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(HTTPException, _not_routed)
    app.add_exception_handler(Exception, _broken)
    edge = Edge(Api(core, app), core)
    app.router.routes.append(ASGIRoute("/mcp", ToolEndpoint(core, edge)))
    sign_in = SignInEndpoint(core.lab)
    app.router.routes.extend(ASGIRoute(path, sign_in) for path in oauth_endpoint.PATHS)
    return edge


def _openapi(core: LabCore) -> Callable[[Request], Response]:
    def document(request: Request) -> Response:
        words, header = core.lab.settings.words, request.headers.get("authorization")
        body = openapi.rendered(words, partner=_is_partner(core, header))
        return Response(body, media_type="application/json")

    return document


def _token_key(core: LabCore) -> Callable[[], dict[str, str]]:
    """The key that the tokens are signed with, for whoever attenuates them offline; the contract has no place for it."""

    def answer() -> dict[str, str]:
        return {"public_key": core.lab.tokens.public_key, "token_prefix": core.lab.settings.token_prefix}

    return answer


def _is_partner(core: LabCore, header: str | None) -> bool:
    """Whether to show the partner-only routes (contract 1). A bad token is no worse than none: none is needed."""
    try:
        return header is not None and core.lab.tokens.authenticate(header).role == "partner"
    except Refusal:
        return False


def error(request: Request, status: int, message: str, extra: dict[str, Any] | None = None) -> Response:
    """The error body of contract 2.12."""
    body = {"error": message, "request_id": getattr(request.state, "request_id", "req_none"), **(extra or {})}
    core: LabCore = request.app.state.core
    return Response(json.dumps(core.lab.settings.words.to_wire(body)), status, media_type="application/json")


async def _refused(request: Request, refusal: Exception) -> Response:
    if not isinstance(refusal, Refusal):
        raise refusal
    code = {"code": refusal.code} if refusal.code else {}
    response = error(request, refusal.status, refusal.message, code | refusal.extra)
    if refusal.status == 401:  # noqa: PLR2004
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


async def _not_routed(request: Request, problem: Exception) -> Response:
    status = problem.status_code if isinstance(problem, HTTPException) else 500
    response = error(request, status, "no such path" if status == 404 else "method not allowed here")  # noqa: PLR2004
    if isinstance(problem, HTTPException) and problem.headers:
        response.headers.update(problem.headers)  # Allow, with a 405
    return response


async def _broken(request: Request, problem: Exception) -> Response:
    logger.error("the lab failed on %s %s", request.method, request.url.path, exc_info=problem)
    return error(request, 500, "internal server error")
