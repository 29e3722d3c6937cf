"""Calls on a client of their own, and what a call would send."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter

import pytest

from prefect_assay.service.client import AssayClient

CANARY = "canary-5f3e9b-bearer-token"


@dataclass
class Caller:
    """`call("experiments.get", "id")` makes a client, calls it, and closes it. `waits` are its pauses in seconds."""

    base_url: str
    options: dict = field(default_factory=dict)
    waits: list = field(default_factory=list)
    token: str = CANARY

    def __call__(self, name, /, *args, **kwargs):
        with AssayClient(self.base_url, self.token, sleep=self.waits.append, **self.options) as client:
            value = attrgetter(name)(client)(*args, **kwargs)
            return list(value) if isinstance(value, Iterator) else value


class _Operations(AssayClient):
    def run(self, operation):
        return operation


class _Sent(Exception):
    def __init__(self, operation):
        super().__init__()
        self.operation = operation


class _Stopped(AssayClient):
    def run(self, operation):
        raise _Sent(operation)


def first_operation(call):
    """The first request of rows that are read as they are consumed: `call` gets a client."""
    with pytest.raises(_Sent) as caught:
        next(call(_Stopped("https://localhost", None)))
    return caught.value.operation


# `operations.experiments.get("id")` is the operation that the client would carry out. Nothing is sent.
operations = _Operations("https://localhost", None)
