"""Tests that speak raw HTTP to a Prefect server are as patient as Prefect's own client."""

import re
from pathlib import Path

import httpx

from support.services.prefect_http import open_prefect_http

TESTS = Path(__file__).parents[1]
# A plain request, or a plain client, whose address is a Prefect API. That of the service is `.../api/v1`.
RAW = re.compile(r"httpx\.\w+\((?:base_url=)?f?\"[^\"]*(?:/api(?!/v1)|api_url\})")
ALLOWED = {
    "support/runs/world.py",  # waits for the first answer
    "support/services/prefect_server.py",  # likewise
    "support/stories/stack.py",  # likewise
}


def test_no_test_sends_a_plain_request_to_a_prefect_server():
    raw = {path.relative_to(TESTS).as_posix() for path in TESTS.rglob("*.py") if RAW.search(path.read_text())}
    assert raw == ALLOWED


def test_a_locked_database_is_asked_again_and_a_refusal_is_not():
    statuses = [503, 503, 200, 403]
    asked = []

    def answer(request):
        asked.append(request.url.path)
        return httpx.Response(statuses[len(asked) - 1], headers={"Retry-After": "0"})

    with open_prefect_http("http://prefect.test/api", transport=httpx.MockTransport(answer)) as api:
        assert api.post("/block_documents/").status_code == 200
        assert api.get("/admin").status_code == 403
    assert asked == ["/api/block_documents/"] * 3 + ["/api/admin"]
