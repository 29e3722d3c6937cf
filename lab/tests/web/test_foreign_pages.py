"""A web page of another origin reads nothing of the lab and changes nothing in it, even if it knows a secret link."""

import pytest

from lab_support.core import get, lab_core, order, to_quote
from lab_support.tool_client import browser

FOREIGN = [
    ({"Origin": "http://127.0.0.1:8888"}, 403),
    ({"Origin": "null"}, 403),
    ({"Host": "evil.example:8000"}, 421),
    ({"Host": "evil.example:8000", "Origin": "http://evil.example:8000"}, 421),
]


@pytest.fixture(scope="module")
def core():
    made = lab_core(allowed_hosts=("lab.example",))
    yield made
    made.close()


@pytest.fixture(scope="module")
def http(core):
    with browser(core) as client:
        yield client


@pytest.mark.parametrize(("foreign", "status"), FOREIGN)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("GET", "/api/v1/openapi.json"), ("POST", "/api/v1/experiments"), ("POST", "/mcp")),
        *(
            ("GET", "/portal/"),
            ("POST", "/portal/sign-in/"),
            ("POST", "/portal/organization/settings/tokens/create"),
        ),
        *(("POST", "/_sim/reset"), ("OPTIONS", "/_sim/reset"), ("OPTIONS", "/token"), ("POST", "/token")),
        *(("GET", "/.well-known/oauth-authorization-server"), ("POST", "/register"), ("GET", "/authorize")),
    ],
)
def test_nothing_is_answered(http, foreign, status, method, path):
    answer = http.request(method, path, headers=foreign, content="{}")
    assert answer.status_code == status
    assert answer.headers.get_list("x-request-id") == [answer.json()["request_id"]]
    assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_a_form_decides_and_pays_nothing(core, http):
    quoted, invoiced = to_quote(core), order(core, auto_accept_quote=True).body["experiment_id"]
    page = get(core, f"/experiments/{quoted}")["provider_quote_url"]
    invoice = get(core, f"/experiments/{invoiced}/invoice")
    for foreign, status in FOREIGN:
        for address in (f"{page}accept", f"{page}reject", f"{invoice['provider_invoice_url']}pay"):
            assert http.post(address, headers=foreign).status_code == status
    assert get(core, f"/experiments/{quoted}")["status"] == "quote_sent"
    assert get(core, f"/experiments/{invoiced}/invoice")["status"] == invoice["status"] != "paid"
    same_origin_headers = {"Origin": "http://lab.example:8000", "Host": "lab.example:8000"}
    assert http.post(f"{page}accept", headers=same_origin_headers).status_code == 303
    assert get(core, f"/experiments/{quoted}")["status"] == "waiting_for_materials"
