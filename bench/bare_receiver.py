"""A bare Starlette app that reads the body and answers 401: what `bench_receiver.py` measures the receiver against."""

import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


async def refuse(request: Request) -> JSONResponse:
    await request.body()
    return JSONResponse({"error": "no"}, 401)


app = Starlette(routes=[Route("/assay/{order_key}", refuse, methods=["POST"])])

if __name__ == "__main__":
    uvicorn.run(
        app, port=int(sys.argv[1]), log_level="warning", access_log=False, proxy_headers=False, lifespan="off"
    )
