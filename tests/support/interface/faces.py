"""Runs one call on either face of the client, so that one test covers both."""

import asyncio
from dataclasses import dataclass, field

from prefect_assay.service.client import AssayClient, AsyncAssayClient
from prefect_assay.service.client.http.request import NO_BODY, Operation, Request

CANARY = "canary-5f3e9b-bearer-token"


def unchecked(method, path, body=NO_BODY, **fields):
    """A request that no check of the client has seen; its value is the answer."""
    return Operation(
        request=Request(method=method, path=path, json=body, **fields), read=lambda answer: answer
    )


@dataclass
class Face:
    """`face("experiment", "id")` makes a client, calls it, and closes it. `waits` are its pauses in seconds."""

    kind: str
    base_url: str
    options: dict = field(default_factory=dict)
    waits: list = field(default_factory=list)
    token: str = CANARY

    def __call__(self, name, /, *args, **kwargs):
        if self.kind == "sync":
            return self._sync(name, args, kwargs)
        return asyncio.run(self._async(name, args, kwargs))

    def _sync(self, name, args, kwargs):
        with AssayClient(self.base_url, self.token, sleep=self.waits.append, **self.options) as client:
            value = getattr(client, name)(*args, **kwargs)
            return list(value) if hasattr(value, "__next__") else value

    async def _async(self, name, args, kwargs):
        async def sleep(seconds):
            self.waits.append(seconds)

        async with AsyncAssayClient(self.base_url, self.token, sleep=sleep, **self.options) as client:
            value = getattr(client, name)(*args, **kwargs)
            if hasattr(value, "__anext__"):
                return [item async for item in value]
            return await value
