"""The error table of contract 7, for every endpoint that a row names: all of the lab's routes, over HTTP."""

import re
import uuid

import httpx
import pytest

from assay_lab.api import ROUTES, Route, takes_body
from prefect_assay.errors import (
    AssayError,
    ConfigurationError,
    Forbidden,
    NotFound,
    RateLimited,
    ServiceUnavailable,
    Unauthorized,
)
from prefect_assay.service.client import AssayClient
from support.lab.organisations import plain, refused
from support.rules.register import client_holds, lab_holds

UNKNOWN = str(uuid.UUID(int=1))
JSON = {"content-type": "application/json; charset=utf-8"}
# These two answer for an experiment that they cannot find as contract 7 says: 400 (invoice).
INVOICE = "/experiments/{experiment_id}/invoice"


def names(route: Route) -> str:
    return f"{route.method} {route.path}"


def routes(wanted):
    return pytest.mark.parametrize("route", [route for route in ROUTES if wanted(route)], ids=names)


def filled(route: Route, value: str) -> str:
    return re.sub(r"\{\w+\}", value, route.path)


def call(http: httpx.Client, route: Route, value: str = UNKNOWN, **request) -> httpx.Response:
    if takes_body(route):
        request.setdefault("json", {})
    return http.request(route.method, filled(route, value), **request)


@lab_holds("7.401", "7.body")
@routes(lambda route: not route.open)
def test_every_endpoint_wants_a_token(lab, nobody, route):
    for headers in (
        {},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer nobody"},
        {"Authorization": f"Basic {lab.token}"},
        {"Authorization": lab.token},
        {"Authorization": f"Bearer {lab.token}x"},
        {"Authorization": f"Bearer {lab.token[:-6]}"},
        {"Authorization": f"Bearer {lab.token[:-1]}"},
        {"Authorization": f"Bearer {lab.sim_token}"},
    ):
        body = refused(nobody.request(route.method, filled(route, UNKNOWN), headers=headers), 401)
        assert set(body) == {"error", "request_id"}
        assert lab.token not in body["error"]


def test_what_is_open_needs_no_token(nobody):
    for path in ("/openapi.json", "/info/health"):
        assert nobody.get(path).status_code == 200


def test_any_living_token_may_ask_for_the_databases_health(nobody, shared):
    # contract 4: all endpoints require the token but the openapi.json fetch; shapes exempt /info/health only
    refused(nobody.get("/info/health-db"), 401)
    assert shared.viewer.get("/info/health-db").json() == {"status": "ok", "db": "ok"}


@client_holds("7.401.shape")
@pytest.mark.parametrize("token", ["", " ", "two words", "line\nbreak", "é"])
def test_the_client_refuses_what_is_no_token(lab, token):
    with pytest.raises(ConfigurationError):
        AssayClient(lab.base_url, token)


@lab_holds("7.401.shape")
@pytest.mark.parametrize("token", ["two words", "a\tb", "é".encode()])
def test_the_lab_refuses_what_is_no_token(lab, nobody, token):
    sent = b"Bearer " + token if isinstance(token, bytes) else f"Bearer {token}"
    refused(nobody.get("/whoami", headers={"Authorization": sent}), 401)
    with AssayClient(lab.base_url, "nobody") as client, pytest.raises(Unauthorized):
        client.tokens.whoami()


@lab_holds("7.403")
@routes(
    lambda route: (
        route.writes and not route.open and not route.partner and route.resource not in ("feedback", "token")
    )
)
def test_a_viewer_writes_nowhere(shared, route):
    refused(call(shared.viewer, route), 403)


def test_the_client_raises_forbidden(lab, org):
    with AssayClient(lab.base_url, org.lab.viewer_token) as client:
        assert client.experiments.list().total == 0
        with pytest.raises(Forbidden):
            client.experiments.submit(UNKNOWN)


@lab_holds("7.404.absent")
@routes(lambda route: "{" in route.path and not route.open)
def test_ids_that_do_not_exist(shared, route):
    # A good body, so that nothing but the id is wrong.
    bodies = {"/quotes/{quote_id}/reject": {"reason": "price"}}
    request = {"json": bodies.get(route.path, {})} if takes_body(route) else {}
    for value in (UNKNOWN, "nothing", "in_0", "%00", "'%20OR%201=1", "%F0%9F%A7%AC"):
        answer = call(shared.http, route, value, **request)
        refused(answer, 400 if route.path == INVOICE else 404)


@lab_holds("7.404.foreign", "7.400.invoice")
def test_ids_of_another_organisation(org, stranger):
    made = org.made(auto_accept_quote=True)
    org.advance(days=16)
    own = org.http
    ids = {
        "experiment_id": made["experiment_id"],
        "quote_id": own.get("/quotes").json()["items"][0]["id"],
        "invoice_id": own.get("/invoices").json()["items"][0]["id"],
        "sequence_id": own.get("/sequences").json()["items"][0]["id"],
        "result_id": own.get("/results").json()["items"][0]["id"],
    }
    hook = own.post("/webhooks", json={"url": "https://example.org/x"}).json()
    ids["webhook_id"] = hook["id"]
    tried = 0
    for route in ROUTES:
        key = re.search(r"\{(\w+)\}", route.path)
        if key is None or key[1] not in ids:
            continue
        body = (
            {"json": {"reason": "price"} if route.path.endswith("reject") else {}}
            if takes_body(route)
            else {}
        )
        answer = call(stranger.http, route, ids[key[1]], **body)
        # Contract 7 has two rows for the invoice of a foreign experiment, 400 and 403.
        assert answer.status_code in ((400, 403) if route.path == INVOICE else (404,)), (route, answer.text)
        assert answer.json()["request_id"]
        tried += 1
    assert tried >= 15
    for path in ("/experiments", "/quotes", "/invoices", "/sequences", "/results", "/updates"):
        assert stranger.http.get(path).json()["total"] == 0
    assert stranger.http.get("/webhooks").json() == []
    stranger.reads(AssayError, lambda client: client.experiments.get_invoice(made["experiment_id"]))


@client_holds("7.404.dots")
@pytest.mark.parametrize("value", ["", ".", "..", " "])
def test_the_client_never_changes_the_path(org, value):
    org.refuses(lambda client: client.experiments.get(value))
    org.refuses(lambda client: client.experiments.submit(value))


@lab_holds("7.404.dots")
def test_the_lab_takes_no_ids_of_dots(org):
    for path in ("/experiments/..%2Fwhoami", "/experiments/%2e%2e/submit", "/experiments//submit"):
        refused(org.http.post(path), 404)
    org.reads(NotFound, lambda client: client.experiments.get("../whoami"))


@lab_holds("7.415", "4.2.patch.4")
@routes(takes_body)
def test_a_body_is_sent_as_json(shared, route):
    # Whatever the id: the body is looked at, unless the thing is not there at all.
    allowed = {415} if "{" not in route.path else {415, 404, 403}
    token = shared.lab.partner_token if route.partner else None
    with plain(shared.running, token or shared.lab.token) as http:
        for headers, content in (
            ({}, b""),
            ({}, b"{}"),
            ({"content-type": "text/plain"}, b"{}"),
            (JSON, b""),
        ):
            answer = http.request(route.method, filled(route, UNKNOWN), headers=headers, content=content)
            assert answer.status_code in allowed, (headers, content, answer.text)


@lab_holds("7.400.malformed")
@routes(lambda route: takes_body(route) and "{" not in route.path)
def test_a_body_is_a_json_object(shared, route):
    token = shared.lab.partner_token if route.partner else shared.lab.token
    with plain(shared.running, token) as http:
        for content in (
            b"{",
            b"[]",
            b'"x"',
            b"null",
            b'{"a": NaN}',
            b'{"a": 1, "a": 2}',
            b"\xff",
            b"[" * 10_000,
        ):
            answer = http.request(route.method, route.path, headers=JSON, content=content)
            assert answer.status_code in ((400, 422) if route.path.endswith("cost-estimate") else (400,)), (
                content
            )
            assert answer.json()["request_id"] == answer.headers["x-request-id"]


@lab_holds("7.400.type_filter")
def test_the_lab_knows_the_types_to_filter_by(org):
    for query in (
        {"experiment_type": "sequencing"},
        {"filter": "eq(experiment_type,sequencing)"},
        {"equ(experiment_type)": "x"},
    ):
        refused(
            org.http.get("/experiments", params=query),
            400,
            "experiment_type" if "filter" not in query else "filter",
        )
    assert org.http.get("/experiments", params={"experiment_type": "affinity"}).status_code == 200


@lab_holds("7.429")
def test_too_many_requests(org):
    for _ in range(2):
        org.lab.fault("status", "/whoami", "GET", status=429, retry_after=120)
    answer = org.http.get("/whoami")
    refused(answer, 429)
    assert answer.headers["retry-after"] == "120"
    assert org.reads(RateLimited, lambda client: client.tokens.whoami()).retry_after == 120


@lab_holds("7.500")
def test_an_internal_error(org):
    for _ in range(2):
        org.lab.fault("status", "/experiments", "POST", status=500)
    refused(org.http.post("/experiments", json={}), 500)
    assert org.http.get("/experiments").json()["total"] == 0
    org.lab.fault("status", "/whoami", "GET", status=500, count=9)
    with (
        AssayClient(org.lab.base_url, org.lab.token, retries=0) as client,
        pytest.raises(ServiceUnavailable) as caught,
    ):
        client.tokens.whoami()
    assert caught.value.status_code == 500
    org.lab.clear_faults()


def test_unknown_paths_and_methods_have_the_same_body(org):
    refused(org.http.get("/nowhere"), 404)
    refused(org.http.delete("/experiments"), 405)
