"""`prefect-assay server` as a process: what the pages of other origins can send reads nothing and changes nothing."""

import asyncio
import json

import pytest
import websockets

from support.services.prefect_http import open_prefect_http
from support.services.prefect_server import prefect_server

SECRET = "canary-of-a-wallet"
VARIABLE = json.dumps({"name": "planted", "value": "1"})
PAGE = {"Origin": "http://127.0.0.1:8888"}  # another server of this machine, such as a notebook
REBOUND = {"Host": "evil.example:4200"}
SOCKETS = ("/api/events/out", "/api/events/in", "/api/logs/out", "/api/task_runs/subscriptions/scheduled")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("server")
    with prefect_server(home) as url:
        yield url
        # A page that asks again and again fills no log.
        assert "ERROR" not in (home / "server.log").read_text()


@pytest.fixture(scope="module")
def api(server):
    with open_prefect_http(f"{server}/api") as client:
        yield client


@pytest.fixture(scope="module")
def pages():
    with open_prefect_http() as client:
        yield client


@pytest.fixture(scope="module")
def block(api):
    """A saved block with a secret."""
    kind = api.get("/block_types/slug/secret").json()
    schema = api.post(
        "/block_schemas/filter", json={"block_schemas": {"block_type_id": {"any_": [kind["id"]]}}}
    ).json()[0]
    made = api.post(
        "/block_documents/",
        json={
            "name": "wallet",
            "data": {"value": SECRET},
            "block_type_id": kind["id"],
            "block_schema_id": schema["id"],
        },
    )
    assert made.status_code == 201, made.text
    return made.json()["id"]


def data(api, block):
    return api.get(f"/block_documents/{block}", params={"include_secrets": True}).json()["data"]


@pytest.mark.parametrize("foreign", [PAGE, {"Origin": "null"}, REBOUND], ids=["page", "null", "rebound"])
@pytest.mark.parametrize(
    ("method", "path", "body", "kind"),
    [
        ("POST", "/variables/", VARIABLE, None),
        ("POST", "/variables/", VARIABLE, "text/plain"),
        ("POST", "/variables/", VARIABLE, "application/x-www-form-urlencoded"),
        ("POST", "/block_documents/filter", json.dumps({"include_secrets": True}), None),
        ("PATCH", "/block_documents/{block}", json.dumps({"data": {"value": "theirs"}}), "application/json"),
        ("DELETE", "/block_documents/{block}", "", None),
        ("OPTIONS", "/block_documents/filter", "", None),
        ("GET", "/block_documents/{block}?include_secrets=true", "", None),
        ("GET", "/admin/settings", "", None),
        ("GET", "/health", "", None),
    ],
)
def test_what_a_foreign_page_sends_is_refused(api, block, foreign, method, path, body, kind):
    headers = {
        **foreign,
        "Access-Control-Request-Method": "PATCH",
        **({"Content-Type": kind} if kind else {}),
    }
    answer = api.request(method, path.format(block=block), content=body, headers=headers)
    assert answer.status_code == (421 if foreign is REBOUND else 403)
    assert SECRET not in answer.text
    assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert api.post("/variables/filter", json={}).json() == []
    assert data(api, block) == {"value": SECRET}


@pytest.mark.parametrize(
    "path", ["/", "/v2/", "/ui-settings", "/docs", "/openapi.json", "/api/docs", "/nowhere"]
)
def test_pages_and_documents_are_refused_too(server, pages, path):
    assert pages.get(f"{server}{path}", headers=PAGE).status_code == 403
    assert pages.get(f"{server}{path}", headers=REBOUND).status_code == 421


@pytest.mark.parametrize("path", SOCKETS)
def test_websockets_of_foreign_pages_are_refused(server, path):
    assert opened(server, path) is True
    assert opened(server, path, origin=server) is True
    assert opened(server, path, origin=PAGE["Origin"]) == 403
    assert opened(server, path, origin="null") == 403
    assert opened(server, path, additional_headers=REBOUND) == 403


def opened(server, path, **options):
    """Whether a WebSocket opens, else the status."""

    async def connect():
        try:
            async with websockets.connect(server.replace("http", "ws") + path, proxy=None, **options):
                return True
        except websockets.InvalidStatus as refused:
            return refused.response.status_code

    return asyncio.run(connect())


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_both_interfaces_ask_the_address_of_their_page(server, pages, host):
    origin = server.replace("127.0.0.1", host)
    assert pages.get(f"{origin}/ui-settings").json()["api_url"] == "/api"
    headers = {"Origin": origin}
    assert pages.post(f"{origin}/api/flow_runs/count", json={}, headers=headers).status_code == 200
    for page in ("/dashboard", "/v2/dashboard"):
        assert "<script" in pages.get(f"{origin}{page}", headers={"Accept": "text/html"}).text
