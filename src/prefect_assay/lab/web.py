"""The web layer: the route table as a FastAPI application. It carries requests and answers, and decides nothing.

Bodies are read raw: the core validates them with the lab's own schemas and accumulates findings.
"""

import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from prefect_assay.lab import openapi, portal, sim
from prefect_assay.lab.core import Answer
from prefect_assay.lab.edge import Edge
from prefect_assay.lab.refusals import Refusal
from prefect_assay.lab.routes import ROUTES, Route
from prefect_assay.lab.service import LabCore
from prefect_assay.lab.settings import API_PREFIX

logger = logging.getLogger("prefect_assay.lab")

_FIRST_ERROR: Final = 400


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
    for route in ROUTES:
        app.add_api_route(
            API_PREFIX + route.path,
            _endpoint(core, route),
            methods=[route.method],
            **openapi.description(route),
        )
    app.add_api_route(f"{API_PREFIX}/openapi.json", _openapi(app), methods=["GET"], include_in_schema=False)
    app.add_api_route(
        f"{API_PREFIX}/info/health", _health, methods=["GET"], summary="Health, without a token"
    )
    app.include_router(sim.router, prefix="/_sim", include_in_schema=False)
    app.include_router(portal.router, prefix="/portal", include_in_schema=False)
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(HTTPException, _not_routed)
    app.add_exception_handler(Exception, _broken)
    return Edge(app, core)


def _endpoint(core: LabCore, route: Route) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        body = await request.body()
        answer: Answer = await run_in_threadpool(
            core.perform,
            route,
            path=request.path_params,
            query=dict(request.query_params),
            headers=dict(request.headers),
            body=body,
        )
        spelt = core.lab.settings.words.to_wire(answer.body)
        if answer.status >= _FIRST_ERROR:
            spelt |= {"request_id": request.state.request_id}  # contract 2.12, also of a 402
        content = json.dumps(spelt)
        return Response(content, answer.status, dict(answer.headers), media_type="application/json")

    return endpoint


def _openapi(app: FastAPI) -> Callable[[], Awaitable[Response]]:
    async def document() -> Response:
        return Response(json.dumps(openapi.document(app)), media_type="application/json")

    return document


async def _health() -> Response:
    return Response('{"status": "ok"}', media_type="application/json")


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
    return error(request, status, "no such path" if status == 404 else "method not allowed here")  # noqa: PLR2004


async def _broken(request: Request, problem: Exception) -> Response:
    logger.error("the lab failed on %s %s", request.method, request.url.path, exc_info=problem)
    return error(request, 500, "internal server error")
