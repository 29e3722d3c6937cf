"""The tool protocol over the API's tools (contract 1). Needs the extra `lab`; imported with the first call.

A tool call goes through the lab's own edge like a request over HTTP. A 402 stays a 402: status, headers and body are in
the structured content, so a machine payment works over tools alone.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Scope

from assay_lab.api import DOCUMENT_VERSION
from assay_lab.kernel.refusals import Refusal
from assay_lab.service.core import LabCore
from assay_lab.web.edge import HeldAnswer
from assay_lab.web.tools import Request, Tool, list_tools

PATH: Final = "/mcp"
_RESULT: Final = {
    "type": "object",
    "properties": {
        "status": {"type": "integer", "description": "HTTP status of the call"},
        "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        "body": {"description": "JSON body; null when it is empty or a file"},
        "file": {"type": "object", "description": "media_type, size_bytes and uri of an attached file"},
    },
    "required": ["status", "headers", "body"],
}


# Headers that people know in another spelling than lower case.
_SPELT: Final = {
    name.lower(): name
    for name in ("WWW-Authenticate", "PAYMENT-REQUIRED", "PAYMENT-RESPONSE", "Payment-Receipt", "Retry-After")
}
_OF_THE_WIRE: Final = frozenset({"content-length", "connection", "transfer-encoding"})


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    headers: Mapping[str, str]
    media_type: str
    body: bytes


class _LostAnswer(Exception):
    """A fault broke the connection before the answer was whole."""


class _Exchange(HeldAnswer):
    def __init__(self, body: bytes) -> None:
        super().__init__()
        self._unread: bytes | None = body

    async def receive(self) -> Message:
        if self._unread is None:  # a second call waits for the end of the connection
            return {"type": "http.disconnect"}
        body, self._unread = self._unread, None
        return {"type": "http.request", "body": body, "more_body": False}

    def reply(self) -> _Reply:
        if not self.complete or self.status is None:
            raise _LostAnswer
        headers: dict[str, str] = {}
        for raw, value in self.headers:
            name = raw.decode("latin-1").lower()
            name, text = _SPELT.get(name, name), value.decode("latin-1")
            headers[name] = f"{headers[name]}, {text}" if name in headers else text
        media_type = headers.pop("content-type", "").partition(";")[0].strip()
        kept = {name: value for name, value in headers.items() if name not in _OF_THE_WIRE}
        return _Reply(self.status, kept, media_type, self.body)


def create_server(core: LabCore, edge: ASGIApp) -> Starlette:
    """The ASGI application at /mcp; its lifespan must be running while it serves."""
    protocol = _Protocol(core, edge)
    server: Server[Any] = Server(
        "protein-characterization-lab",
        version=DOCUMENT_VERSION,
        title="Protein characterization service (local lab)",
        instructions="Each tool is one call of the REST API and takes the same parameters.",
        on_list_tools=protocol.list_tools,
        on_call_tool=protocol.call_tool,
    )
    return server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        # Off: the whole lab is guarded already, and knows more names of the machine.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )


class _Protocol:
    """The two methods of the protocol that the lab serves."""

    def __init__(self, core: LabCore, edge: ASGIApp) -> None:
        self._core = core
        self._edge = edge
        self._tools = list_tools(core.lab.settings.words)

    async def list_tools(self, ctx: Any, _params: Any) -> types.ListToolsResult:
        """All tools; those of partners only for partner tokens (contract 5.3)."""
        header = ctx.request.headers.get("authorization")
        who = await run_in_threadpool(self._core.lab.tokens.authenticate, header)
        partner = who.role == "partner"
        return types.ListToolsResult(
            tools=[_describe_tool(tool) for tool in self._tools.values() if partner or not tool.partner]
        )

    async def call_tool(self, ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Send the call's request with the caller's own token; the result holds the whole answer."""
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"no tool is named {params.name!r}")
        try:
            request = tool.request(params.arguments or {})
        except Refusal as refusal:
            # No request was made of it: it has the id of the call itself.
            request_id = ctx.request.state.request_id
            body = {"error": refusal.message, "request_id": request_id}
            return _make_result(
                {"status": refusal.status, "headers": {"x-request-id": request_id}, "body": body}
            )
        try:
            reply = await _send_request(
                self._edge,
                request,
                authorization=ctx.request.headers.get("authorization", ""),
                outer=ctx.request.scope,
            )
        except (_LostAnswer, ConnectionResetError) as lost:
            raise MCPError(types.INTERNAL_ERROR, "the connection broke") from lost
        return _make_answer(reply, self._core.lab.settings.base_url + request.path)


def _describe_tool(tool: Tool) -> types.Tool:
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


def _make_answer(reply: _Reply, uri: str) -> types.CallToolResult:
    content: dict[str, Any] = {"status": reply.status, "headers": dict(reply.headers), "body": None}
    if not reply.body:
        return _make_result(content)
    if reply.media_type == "application/json":
        return _make_result(content | {"body": json.loads(reply.body)})
    content["file"] = {"media_type": reply.media_type, "size_bytes": len(reply.body), "uri": uri}
    blob = types.BlobResourceContents(
        uri=uri, mime_type=reply.media_type, blob=base64.b64encode(reply.body).decode()
    )
    return _make_result(content, types.EmbeddedResource(resource=blob))


def _make_result(content: dict[str, Any], *files: types.EmbeddedResource) -> types.CallToolResult:
    # The same once more as text, for clients that do not read structured content.
    text = types.TextContent(text=json.dumps(content))
    return types.CallToolResult(
        content=[text, *files],
        structured_content=content,
        is_error=content["status"] >= HTTPStatus.BAD_REQUEST,
    )


async def _send_request(
    edge: ASGIApp, request: Request, *, authorization: str, outer: Mapping[str, Any]
) -> _Reply:
    """The answer to a tool's request; a fault closes the connection of `outer` and raises _LostAnswer."""
    headers = {**request.headers, "authorization": authorization, "content-length": str(len(request.body))}
    host = [(name, value) for name, value in outer.get("headers", ()) if name == b"host"]
    sent = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    connection = outer.get("state", {}).get("connection")
    kept = ("type", "asgi", "http_version", "scheme", "client", "server")
    scope: Scope = {name: outer[name] for name in kept if name in outer} | {
        "method": request.method,
        "path": request.path,
        "raw_path": request.path.encode(),
        "query_string": request.query.encode(),
        "root_path": "",
        "headers": [*host, *sent],
        "state": {} if connection is None else {"connection": connection},
    }
    exchange = _Exchange(request.body)
    await edge(scope, exchange.receive, exchange.take)
    return exchange.reply()
