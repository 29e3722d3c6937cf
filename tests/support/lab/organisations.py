"""A fresh organization of a running lab, with a client that writes down what it sends and a plain client that checks nothing."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from assay_lab.testing import LabOrganization, LocalLab
from lab_support.core import spec
from prefect_assay.errors import AssayError, InputError, RequestRefused
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.spec import ExperimentSpec

_numbers = itertools.count(1)


class Recording(httpx.HTTPTransport):
    """The network, with a note of everything that goes out."""

    def __init__(self) -> None:
        super().__init__(
            verify=False
        )  # plain http on loopback: reading certificates takes longer than a test
        self.sent: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.sent.append(request)
        return super().handle_request(request)


@dataclass
class Org:
    """One organization: `client` checks before it sends, `http` and `viewer` send whatever they are given.

    `lab` controls this organization alone: its clock, its faults, its journals.
    """

    running: LocalLab
    lab: LabOrganization
    client: AssayClient
    http: httpx.Client
    viewer: httpx.Client
    transport: Recording

    @property
    def id(self) -> str:
        return self.lab.organization_id

    def advance(self, **span: Any) -> None:
        self.lab.advance(**span)

    def post(self, specification: dict[str, Any] | None = None, **fields: Any) -> httpx.Response:
        """POST /experiments as it stands."""
        body = {
            "experiment_spec": spec() if specification is None else specification,
            "name": "rules",
            **fields,
        }
        return self.http.post("/experiments", json=body)

    def made(self, specification: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
        """An experiment; the body of the answer."""
        answer = self.post(specification, **fields)
        assert answer.is_success, answer.text
        body: dict[str, Any] = answer.json()
        return body

    def quoted(self, **fields: Any) -> str:
        """An experiment whose quote is sent; its id."""
        experiment_id: str = self.made(skip_draft=True, **fields)["experiment_id"]
        self.advance(hours=1)
        return experiment_id

    def refuses(self, call: Any) -> InputError:
        """The error with which the client refuses, before anything is sent."""
        before = len(self.transport.sent)
        with pytest.raises(InputError) as caught:
            call(self.client)
        assert not isinstance(caught.value, RequestRefused)
        assert len(self.transport.sent) == before, "it was sent"
        return caught.value

    def reads(self, kind: type[AssayError], call: Any) -> AssayError:
        """The error that the client makes of the lab's answer."""
        with pytest.raises(kind) as caught:
            call(self.client)
        assert caught.value.request_id, "an error names its request"
        return caught.value


def plain(lab: LocalLab, token: str | None = None) -> httpx.Client:
    """A client that sends whatever it is given, with a token or without."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    transport = httpx.HTTPTransport(verify=False)
    return httpx.Client(base_url=f"{lab.base_url}/api/v1", headers=headers, transport=transport, timeout=30)


@contextmanager
def organisation(lab: LocalLab, **details: Any) -> Iterator[Org]:
    """Make one, and close its clients."""
    seeded = lab.seed(f"rules{next(_numbers)}", **details)
    transport = Recording()
    with (
        AssayClient(lab.base_url, seeded.token, transport=transport, sleep=lambda _: None) as client,
        plain(lab, seeded.token) as http,
        plain(lab, seeded.viewer_token) as viewer,
    ):
        yield Org(lab, seeded, client, http, viewer, transport)


def refused(answer: httpx.Response, status: int, *words: str) -> dict[str, Any]:
    """The body of a refusal with this status that says these words."""
    assert answer.status_code == status, answer.text
    body: dict[str, Any] = answer.json()
    assert body["request_id"] == answer.headers["x-request-id"]
    for word in words:
        assert word in body["error"], body["error"]
    return body


def typed(raw: dict[str, Any]) -> ExperimentSpec:
    """The client's model of a raw specification."""
    return ExperimentSpec.model_validate(raw)
