"""The web side of the control surface /_sim: its own token, its bodies and its answers. Absent from openapi.json."""

import functools
import hmac
import json
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic_core import from_json
from starlette.exceptions import HTTPException

from assay_lab.control.commands import Command
from assay_lab.kernel.refusals import Refusal
from assay_lab.service.core import LabCore

Action = TypeVar("Action", bound=Callable[..., Any])


class _JsonRequest(Request):
    """Reads every body as JSON, an empty one as an object without fields."""

    async def body(self) -> bytes:
        return await super().body() or b"{}"

    async def json(self) -> Any:
        try:
            value = from_json(await self.body(), allow_inf_nan=False)
        except ValueError as error:
            raise HTTPException(400, f"malformed JSON: {error}") from error
        if not isinstance(value, dict):
            raise HTTPException(400, "the body must be an object")
        return value


class _JsonRoute(APIRoute):
    """Takes the sim token, refuses as the service does, and ignores the content type, which `curl -d` gets wrong."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_or_refuse(request: Request) -> Response:
            _check_token(request)
            headers = [(name, value) for name, value in request.scope["headers"] if name != b"content-type"]
            scope = {**request.scope, "headers": headers}
            try:
                return await handle(_JsonRequest(scope, request.receive))
            except RequestValidationError as error:
                findings = [
                    f"{'.'.join(map(str, item['loc'][1:])) or 'body'}: {item['msg'].removeprefix('Value error, ')}"
                    for item in error.errors()
                ]
                raise Refusal.of_all(400, findings) from error
            except HTTPException as error:
                raise Refusal(error.status_code, error.detail) from error

        return handle_or_refuse


class Surface(APIRouter):
    """Routes of the control surface, each registered with `handles`."""

    def __init__(self) -> None:
        super().__init__(route_class=_JsonRoute, strict_content_type=False)

    def handles(self, command: Command[Any]) -> Callable[[Action], Action]:
        """Make a function the handler of a command; what it returns is the JSON answer."""

        def register(action: Action) -> Action:
            @functools.wraps(action)
            def answer(*args: Any, **kwargs: Any) -> Response:
                content = json.dumps(action(*args, **kwargs), default=_format_plain)
                return Response(content, media_type="application/json")

            self.add_api_route(command.path, answer, methods=[command.method], response_model=None)
            return action

        return register


def _check_token(request: Request) -> None:
    authorization = request.headers.get("authorization", "").encode()
    if not hmac.compare_digest(authorization, f"Bearer {_get_core(request).lab.settings.sim_token}".encode()):
        raise Refusal(401, "the control surface takes the sim token")


def _get_core(request: Request) -> LabCore:
    core: LabCore = request.app.state.core
    return core


def _format_plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


Core = Annotated[LabCore, Depends(_get_core)]
