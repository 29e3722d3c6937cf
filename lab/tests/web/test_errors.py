"""Error bodies and headers on the wire (contract 2.12 and 7)."""

import asyncio
from collections.abc import Mapping

import httpx
import pytest

from assay_lab.web.server import create_app
from lab_support.core import lab_core


@pytest.fixture(scope="module")
def core():
    made = lab_core()
    yield made
    made.close()


def ask(core, method, path, *, headers: Mapping[str, str] | None = None, **request):
    """One request through the whole application, without a socket."""
    token = {"Authorization": f"Bearer {core.seeded.member_token}"}

    async def send():
        transport = httpx.ASGITransport(app=create_app(core), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://lab") as client:
            return await client.request(
                method, path, headers=token if headers is None else headers, **request
            )

    return asyncio.run(send())


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/v1/nothing", 404),
        ("GET", "/api/v1/experiments/", 404),
        ("DELETE", "/api/v1/experiments", 405),
        ("PUT", "/api/v1/experiments/x", 405),
        ("POST", "/api/v1/openapi.json", 405),
        ("GET", "/nothing", 404),
        ("GET", "/portal/invoices/guess/pdf", 404),
        ("GET", "/api/v1/experiments/x", 404),
        ("POST", "/api/v1/experiments", 415),
        ("GET", "/api/v1/experiments?limit=0", 400),
    ],
)
def test_every_error_has_the_same_body_and_names_its_request(core, method, path, status):
    answer = ask(core, method, path)
    assert answer.status_code == status
    body = answer.json()
    assert set(body) == {"error", "request_id"}
    assert body["request_id"] == answer.headers["x-request-id"]
    assert body["request_id"].startswith("req_")
    assert ("allow" in answer.headers) == (status == 405)


def test_no_token_is_a_401_that_says_how_to_bring_one(core):
    answer = ask(core, "GET", "/api/v1/experiments", headers={})
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


def test_a_failure_of_the_lab_itself_has_the_body_as_well(core, monkeypatch):
    monkeypatch.setattr(core.lab.store, "transaction", None)
    for path in ("/api/v1/info/health-db", "/portal/quotes/x/"):
        answer = ask(core, "GET", path)
        assert (answer.status_code, answer.json()["error"]) == (500, "internal server error")
        assert answer.json()["request_id"] == answer.headers["x-request-id"]
