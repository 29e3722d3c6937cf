"""A user's issuer of shared payment tokens, on loopback."""

from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import uuid4

from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from support.services.asgi import served
from support.services.fault_server import gzip_bomb

ISSUER_KEY = "canary-issuer-key"
FAILURES = {
    "status": lambda: Response("canary", status_code=503),
    "text": lambda: Response("canary"),
    "redirect": lambda: RedirectResponse("/elsewhere"),
    "shape": lambda: JSONResponse({"token": "canary"}),
    "list": lambda: JSONResponse(["canary"]),
    "endless": lambda: StreamingResponse(b"canary" * 1000 for _ in range(100_000)),
    "packed": lambda: Response(gzip_bomb(32), headers={"content-encoding": "gzip"}),
    "empty": lambda: JSONResponse({"spt": ""}),
}


@dataclass
class Issuer:
    """What was asked; `broken` says how it fails."""

    url: str = ""
    asked: list[dict] = field(default_factory=list)
    broken: str = ""


@contextmanager
def issuer_server():
    issuer = Issuer()

    async def issue(request):
        if request.headers.get("Authorization") != f"Bearer {ISSUER_KEY}":
            return Response(status_code=401)
        issuer.asked.append(await request.json())
        if issuer.broken:
            return FAILURES[issuer.broken]()
        # A name of its own, because a lab takes each token once, whichever test's issuer made it.
        return JSONResponse({"spt": f"spt_issued_{uuid4().hex}"}, status_code=201)

    with served(Starlette(routes=[Route("/issue", issue, methods=["POST"])])) as base_url:
        issuer.url = f"{base_url}/issue"
        yield issuer
