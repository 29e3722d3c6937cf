"""The tool protocol over the API's tools (contract 1). Needs the extra `lab`; import it only when a tool client comes.

Built on the official low-level server. A 402 stays a 402 here: status, headers and body of every answer stand in
the result's structured content, so that a machine payment works over tools alone.
"""

import base64
import json
from typing import Any, Final
from urllib.parse import urlsplit

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool

from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.openapi import DOCUMENT_VERSION
from prefect_assay.lab.service.api import App
from prefect_assay.lab.service.core import LabCore
from prefect_assay.lab.tools import catalog as tools
from prefect_assay.lab.tools.call import LostAnswer, Reply, carry_out

PATH: Final = "/mcp"
_FIRST_ERROR: Final = 400
_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
_RESULT: Final = {
    "type": "object",
    "properties": {
        "status": {"type": "integer", "description": "HTTP status of the call"},
        "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        "body": {"description": "JSON body; null when there is none or it is a file"},
        "file": {"type": "object", "description": "media_type, size_bytes and uri of an attached file"},
    },
    "required": ["status", "headers", "body"],
}


def create(core: LabCore, edge: App) -> Starlette:
    """The ASGI application at /mcp; its lifespan must be running while it serves."""
    speaker = _Speaker(core, edge)
    server: Server[Any] = Server(
        "protein-characterization-lab",
        version=DOCUMENT_VERSION,
        title="Protein characterization service (local lab)",
        instructions="Each tool is one call of the REST API and takes the same parameters.",
        on_list_tools=speaker.list_tools,
        on_call_tool=speaker.call_tool,
    )
    return server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        transport_security=_security(core.lab.settings.base_url, core.lab.settings.allowed_hosts),
    )


def _security(base_url: str, allowed: tuple[str, ...]) -> TransportSecuritySettings:
    """Hosts that may be asked for: others get 421, so that no foreign web page reaches a lab on loopback."""
    own = urlsplit(base_url)
    hosts = [*_LOOPBACK, *allowed, own.netloc, own.hostname or ""]
    origins = [f"http://{host}" for host in _LOOPBACK] + [f"{own.scheme}://{own.netloc}"]
    return TransportSecuritySettings(
        allowed_hosts=[*hosts, *(f"{host}:*" for host in hosts)],
        allowed_origins=[*origins, *(f"{origin}:*" for origin in origins)],
    )


class _Speaker:
    """Answers the two methods of the protocol that the lab serves."""

    def __init__(self, core: LabCore, edge: App) -> None:
        self._core = core
        self._edge = edge
        self._tools = tools.catalog(core.lab.settings.words)

    async def list_tools(self, ctx: Any, _params: Any) -> types.ListToolsResult:
        """All tools; those of partners only for partner tokens (contract 5.3)."""
        header = ctx.request.headers.get("authorization")
        who = await run_in_threadpool(self._core.lab.tokens.authenticate, header)
        partner = who.role == "partner"
        return types.ListToolsResult(
            tools=[_described(tool) for tool in self._tools.values() if partner or not tool.partner]
        )

    async def call_tool(self, ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Carry the call out with the caller's own token, and hand on the whole answer."""
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"no tool is named {params.name!r}")
        try:
            request = tool.request(params.arguments or {})
        except Refusal as refusal:
            return _result({"status": refusal.status, "headers": {}, "body": {"error": refusal.message}})
        try:
            reply = await carry_out(
                self._edge,
                request,
                authorization=ctx.request.headers.get("authorization", ""),
                outer=ctx.request.scope,
            )
        except (LostAnswer, ConnectionResetError) as lost:
            raise MCPError(types.INTERNAL_ERROR, "the connection broke") from lost
        return _answered(reply, self._core.lab.settings.base_url + request.path)


def _described(tool: tools.Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=f"{tool.title}. {tool.description}",
        input_schema=dict(tool.schema),
        output_schema=_RESULT,
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.reads,
            destructive_hint=tool.destructive,
            open_world_hint=False,
        ),
    )


def _answered(reply: Reply, uri: str) -> types.CallToolResult:
    content: dict[str, Any] = {"status": reply.status, "headers": dict(reply.headers), "body": None}
    if not reply.body:
        return _result(content)
    if reply.media_type == "application/json":
        return _result(content | {"body": json.loads(reply.body)})
    content["file"] = {"media_type": reply.media_type, "size_bytes": len(reply.body), "uri": uri}
    blob = types.BlobResourceContents(
        uri=uri, mime_type=reply.media_type, blob=base64.b64encode(reply.body).decode()
    )
    return _result(content, types.EmbeddedResource(resource=blob))


def _result(content: dict[str, Any], *files: types.EmbeddedResource) -> types.CallToolResult:
    # The same once more as text, for clients that do not read structured content.
    text = types.TextContent(text=json.dumps(content))
    return types.CallToolResult(
        content=[text, *files],
        structured_content=content,
        is_error=content["status"] >= _FIRST_ERROR,
    )
