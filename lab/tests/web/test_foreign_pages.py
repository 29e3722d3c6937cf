"""A web page of another origin reads nothing of the lab and changes nothing in it, even if it knows a secret link."""

import httpx
import pytest

from assay_lab.testing import LocalLab
from lab_support.core import spec

FOREIGN = [
    ({"Origin": "http://127.0.0.1:8888"}, 403),
    ({"Origin": "null"}, 403),
    ({"Host": "evil.example:8000"}, 421),
    ({"Host": "evil.example:8000", "Origin": "http://evil.example:8000"}, 421),
]


@pytest.fixture(scope="module")
def lab():
    with LocalLab(options=("--allow-host", "lab.example")) as running:
        yield running


@pytest.fixture
def quoted(lab):
    """An experiment whose quote waits for a decision."""
    with lab.http() as http:
        order = {"experiment_spec": spec(), "name": "quoted", "skip_draft": True}
        experiment_id = http.post("/experiments", json=order).json()["experiment_id"]
        lab.advance(hours=1)
        yield lambda: http.get(f"/experiments/{experiment_id}").json()


@pytest.mark.parametrize(("foreign", "status"), FOREIGN)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/openapi.json"),
        ("GET", "/portal/"),
        ("GET", "/.well-known/oauth-authorization-server"),
        ("POST", "/portal/sign-in/"),
        ("POST", "/portal/organization/settings/tokens/create"),
        ("POST", "/_sim/reset"),
        ("OPTIONS", "/_sim/reset"),
        ("OPTIONS", "/token"),
        ("POST", "/register"),
        ("POST", "/token"),
        ("GET", "/authorize"),
        ("POST", "/mcp"),
        ("POST", "/api/v1/experiments"),
    ],
)
def test_nothing_is_answered(lab, foreign, status, method, path):
    answer = httpx.request(method, lab.base_url + path, headers=foreign, content="{}", trust_env=False)
    assert answer.status_code == status
    assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize(("foreign", "status"), FOREIGN)
@pytest.mark.parametrize("button", ["accept", "reject"])
def test_a_form_decides_nothing(lab, quoted, foreign, status, button):
    page = quoted()["provider_quote_url"]
    assert httpx.post(page + button, headers=foreign, trust_env=False).status_code == status
    assert quoted()["status"] == "quote_sent"


def test_the_labs_own_pages_decide(lab, quoted):
    port = lab.base_url.rpartition(":")[2]
    page = quoted()["provider_quote_url"]
    own = {"Origin": f"http://lab.example:{port}", "Host": f"lab.example:{port}"}
    assert httpx.post(page + "accept", headers=own, trust_env=False).status_code == 303
    assert quoted()["status"] == "waiting_for_materials"


def test_a_form_pays_nothing(lab):
    order = {"experiment_spec": spec(), "name": "invoiced", "auto_accept_quote": True}
    with lab.http() as http:
        experiment_id = http.post("/experiments", json=order).json()["experiment_id"]
        lab.advance(hours=1)
        invoice = http.get(f"/experiments/{experiment_id}/invoice").json()
        for foreign, status in FOREIGN:
            answer = httpx.post(f"{invoice['provider_invoice_url']}pay", headers=foreign, trust_env=False)
            assert answer.status_code == status
        assert (
            http.get(f"/experiments/{experiment_id}/invoice").json()["status"] == invoice["status"] != "paid"
        )
