"""A client that can't spend: it sends reads and the cost estimate only, and keeps what each answer held.

A rehearsal goes through a campaign's calls with it, against the real service.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from prefect_assay.errors import InvalidRequest, UnexpectedAnswer
from prefect_assay.service.client import AssayClient
from prefect_assay.service.client.http.exchange import Attempt
from prefect_assay.service.client.http.request import Answer, Operation, succeeded
from prefect_assay.service.drift.document import known_interface
from prefect_assay.service.models.service import WireWords

T = TypeVar("T")

_ESTIMATE: Final = ("POST", "/experiments/cost-estimate")


@dataclass(frozen=True, slots=True)
class Exchange:
    """One accepted answer: its call as `drift` names it, its JSON in neutral words, and what the client made of it."""

    operation: str
    request: tuple[object, ...]  # path and parameters: two readings of one record are one
    body: Any = field(repr=False)
    value: Any = field(repr=False)  # None where it can't be read


class WitnessClient(AssayClient):
    """Reads as every client does, refuses to send anything that could change something, and keeps `exchanges`."""

    def __init__(self, base_url: str, token: Any, *, words: WireWords) -> None:
        super().__init__(base_url, token, words=words)
        self.exchanges: list[Exchange] = []
        self._calls = _patterns(known_interface())

    def _send(self, attempt: Attempt) -> Any:
        request = attempt.request
        if request.method != "GET" and (request.method, request.path) != _ESTIMATE:
            raise InvalidRequest([f"{request}: a rehearsal sends reads and the cost estimate only; not sent"])
        return super()._send(attempt)

    def run(self, operation: Operation[T]) -> T:
        """Carry out one operation, and keep the answer whether or not it can be read."""

        def read(answer: Answer) -> T:
            value: T | None = None
            try:
                value = operation.read(answer)
                return value
            finally:
                self._keep(operation, answer, value)

        return super().run(replace(operation, read=read))

    def _keep(self, operation: Operation[Any], answer: Answer, value: object) -> None:
        if not succeeded(answer.status):  # a refusal that the operation understands has no fields
            return
        request = operation.request
        call = f"{request.method} {request.path}"
        name = next((name for name, pattern in self._calls if pattern.fullmatch(call)), call)
        try:
            body = answer.json()
        except UnexpectedAnswer:
            return  # the operation's own reader says so
        self.exchanges.append(Exchange(name, (request.path, request.params), body, value))


def _patterns(names: Iterable[str]) -> list[tuple[str, re.Pattern[str]]]:
    """How each call looks when it is sent; calls without an id come first, as `cost-estimate` is not an id."""
    ordered = sorted(names, key=lambda name: name.count("{}"))
    return [(name, re.compile(re.escape(name).replace(r"\{\}", "[^/]+"))) for name in ordered]
