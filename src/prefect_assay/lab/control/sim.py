"""What all of the control surface /_sim shares: its token, JSON in and out, and how a function becomes a call of it.

The calls themselves stand in `sim_actions` and, about webhooks, in `sim_deliveries`. They are not part of the
service: they take a token of their own and do not appear in openapi.json.
"""

import hmac
import json
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Request, Response
from pydantic_core import from_json
from starlette.concurrency import run_in_threadpool

from prefect_assay.lab.kernel.bodies import Body
from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.requests import validation
from prefect_assay.lab.service.core import LabCore

Action = TypeVar("Action", bound=Callable[..., Any])


class Surface(APIRouter):
    """A router whose calls are plain functions; what one returns is the answer."""

    def call(
        self, method: str, path: str, schema: type[Body] | None = None, *, raw: bool = False
    ) -> Callable[[Action], Action]:
        """Make a function a call below /_sim; the path's parameters are the function's last arguments.

        `schema` checks the body, or the query of a GET or DELETE, which is the argument after the lab; with `raw` that
        argument is the object as it was sent.
        """

        def register(action: Action) -> Action:
            async def handle(core: Core, request: Request) -> Response:
                given: list[Any] = []
                if schema is not None or raw:
                    sent = await _body(request) if method == "POST" else dict(request.query_params)
                    wanted = validation.read(schema, sent) if schema else sent
                    given.append(sent if raw else wanted)
                value = await run_in_threadpool(action, core, *given, *request.path_params.values())
                return Response(json.dumps(value, default=_plain), media_type="application/json")

            self.add_api_route(path, handle, methods=[method], name=action.__name__)
            return action

        return register


def _guard(request: Request) -> LabCore:
    core: LabCore = request.app.state.core
    given = request.headers.get("authorization", "").encode()
    if not hmac.compare_digest(given, f"Bearer {core.lab.settings.sim_token}".encode()):
        raise Refusal(401, "the control surface takes the sim token")
    return core


async def _body(request: Request) -> dict[str, Any]:
    text = await request.body()
    try:
        raw = from_json(text or b"{}", allow_inf_nan=False)
    except ValueError as error:
        raise Refusal(400, f"malformed JSON: {error}") from error
    if not isinstance(raw, dict):
        raise Refusal(400, "the body must be an object")
    return raw


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


Core = Annotated[LabCore, Depends(_guard)]
