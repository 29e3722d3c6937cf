"""Every answer of the lab says that it is simulated, so that nothing can take it for the real service, or the reverse."""

import pytest

from lab_support.sim_client import served

HEADER = "Assay-Simulated"


@pytest.fixture(scope="module")
def lab():
    with served() as running:
        yield running


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/v1/experiments", 200), ("GET", "/api/v1/openapi.json", 200),
        ("POST", "/api/v1/experiments", 415), ("GET", "/api/v1/experiments/none", 404),
        ("GET", "/api/v1/nowhere", 404), ("DELETE", "/api/v1/experiments", 405), ("GET", "/nowhere", 404),
        ("GET", "/portal/sign-in", None), ("GET", "/mcp", None), ("GET", "/_sim/faults", None),
        ("GET", "/.well-known/token-key", 200),
    ],
)  # fmt: skip
def test_each_answer_says_so(lab, method, path, status):
    headers = {"Authorization": f"Bearer {lab.core.seeded.member_token}"}
    answer = lab.http.request(method, path, headers=headers, follow_redirects=False)
    assert status in (None, answer.status_code), answer.text
    assert answer.headers.get_list(HEADER) == ["true"]


@pytest.mark.parametrize(
    "headers", [{}, {"Host": "elsewhere.example"}, {"Origin": "https://elsewhere.example"}]
)
def test_a_refused_caller_reads_it_too(lab, headers):
    answer = lab.http.get("/api/v1/experiments", headers=headers)
    assert answer.status_code in (401, 403, 421)
    assert answer.headers.get_list(HEADER) == ["true"]


@pytest.mark.parametrize("action", ["status", "error_after", "delay"])
def test_an_answer_that_a_fault_has_made_says_so(lab, action):
    lab.fault(action, "/whoami", seconds=0)
    assert lab.api("GET", "/whoami").headers.get_list(HEADER) == ["true"]
