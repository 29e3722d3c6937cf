"""The error table of contract 7 as far as the tour does not play it: `tests/support/tour.py` meets each described refusal."""

import re
import uuid

import pytest

from assay_lab.api import ROUTES, Route, takes_body
from prefect_assay.errors import (
    AssayError,
    ConfigurationError,
    NotFound,
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


def routes(condition):
    return pytest.mark.parametrize("route", [route for route in ROUTES if condition(route)], ids=names)


def filled(route: Route, value: str) -> str:
    return re.sub(r"\{\w+\}", value, route.path)


@client_holds("7.401.shape")
@pytest.mark.parametrize("token", ["", " ", "two words", "line\nbreak", "é"])
def test_the_client_refuses_what_is_no_token(lab, token):
    with pytest.raises(ConfigurationError):
        AssayClient(lab.base_url, token)


@lab_holds("7.401.shape")
@pytest.mark.parametrize("token", ["two words", "a\tb", "é".encode()])
def test_the_lab_refuses_what_is_no_token(lab, token):
    sent = b"Bearer " + token if isinstance(token, bytes) else f"Bearer {token}"
    with plain(lab) as http:
        refused(http.get("/whoami", headers={"Authorization": sent}), 401)
    with AssayClient(lab.base_url, "nobody") as client, pytest.raises(Unauthorized):
        client.tokens.whoami()


@lab_holds("7.404.foreign", "7.400.invoice")
def test_ids_of_another_organisation(org, stranger):
    made = org.made(auto_accept_quote=True)
    org.advance(days=16)
    owner = org.http
    ids = {
        "experiment_id": made["experiment_id"],
        "quote_id": owner.get("/quotes").json()["items"][0]["id"],
        "invoice_id": owner.get("/invoices").json()["items"][0]["id"],
        "sequence_id": owner.get("/sequences").json()["items"][0]["id"],
        "result_id": owner.get("/results").json()["items"][0]["id"],
    }
    hook = owner.post("/webhooks", json={"url": "https://example.org/x"}).json()
    ids["webhook_id"] = hook["id"]
    tried = 0
    for route in ROUTES:
        key = re.search(r"\{(\w+)\}", route.path)
        if key is None or key[1] not in ids:
            continue
        # A good body, so that nothing but the id is wrong.
        sent = (
            {"json": {"reason": "price"} if route.path.endswith("reject") else {}}
            if takes_body(route)
            else {}
        )
        answer = stranger.http.request(route.method, filled(route, ids[key[1]]), **sent)
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
def test_the_lab_takes_no_ids_of_dots_or_odd_letters(org):
    for value in ("..%2Fwhoami", "%2e%2e", "", "in_0", "%00", "'%20OR%201=1", "%F0%9F%A7%AC"):
        refused(org.http.post(f"/experiments/{value}/submit"), 404)
    org.reads(NotFound, lambda client: client.experiments.get("../whoami"))


@lab_holds("7.415")
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
        duplicate, deep = b'{"a": 1, "a": 2}', b"[" * 10_000
        for content in (b"{", b"[]", b'"x"', b"null", b'{"a": NaN}', duplicate, b"\xff", deep):
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
