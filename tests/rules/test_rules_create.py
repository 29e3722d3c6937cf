"""The rules for creating and for estimating (contract 4.2), over HTTP and on both sides."""

import re

import pytest

from lab_support.core import PRICED, UNPRICED, spec
from prefect_assay.errors import InvalidRequest, NotFound, PartialOrder, RequestRefused
from prefect_assay.service.client import AssayClient
from prefect_assay.service.client.http.request import NO_BODY, Operation, Request
from prefect_assay.service.models.experiment import CreateRequest
from support.client import operations
from support.lab.organisations import refused, typed
from support.rules.register import client_holds, lab_holds

SECRET = "s" * 40
UNKNOWN = "00000000-0000-4000-8000-000000000000"
HEADER = "X-Service-Payment-Method"
MACHINE = ("x402-exact", "mpp-spt")
THERMO = {"experiment_type": "thermostability", "method": None, "target_id": None}


def request(specification=None, **fields):
    return CreateRequest(**{"experiment_spec": typed(specification or spec()), "name": "rules"} | fields)


@client_holds("4.2.create.url")
@pytest.mark.parametrize("url", ["http://127.0.0.1:8100/a", "http://localhost/a", "http://[::1]:1/a"])
def test_plain_http_to_this_machine_is_for_a_lab_on_it(org, url):
    org.client.experiments.create(request(webhook_url=url))
    with AssayClient("https://lab.example.org", "t") as client:
        for call in (
            lambda: client.experiments.create(request(webhook_url=url)),
            lambda: client.experiments.modify("e", webhook_url=url),
            lambda: client.webhooks.create(url),
        ):
            with pytest.raises(InvalidRequest, match="lab"):
                call()


def test_a_dictionary_in_place_of_a_specification_is_refused_with_the_way_to_make_one(org):
    error = org.refuses(lambda client: client.experiments.estimate_cost({"experiment_type": "affinity"}))
    assert "an ExperimentSpec is needed, not dict: ExperimentSpec.model_validate" in str(error)


@lab_holds("4.2.create.secret")
def test_the_secret_is_never_returned(org):
    made = org.post(webhook_url="https://example.org/hook", webhook_secret=SECRET)
    assert made.status_code == 201
    path = f"/experiments/{made.json()['experiment_id']}"
    assert SECRET not in made.text
    for further in ("", "/updates", "/sequences"):
        assert SECRET not in org.http.get(path + further).text
    assert SECRET not in org.http.get("/experiments").text


@lab_holds("4.2.create.draft")
def test_it_is_a_draft_by_default(org):
    assert org.made()["status"] == "draft"
    assert org.made(skip_draft=False)["status"] == "draft"
    assert org.made(skip_draft=True)["status"] == "waiting_for_confirmation"


@lab_holds("4.2.create.auto", "7.400.auto")
def test_accepting_at_once_needs_a_target_with_a_price(org):
    made = org.made(auto_accept_quote=True, skip_draft=False)
    assert made["status"] == "waiting_for_confirmation"
    refused(org.post(spec(target_id=UNPRICED["id"]), auto_accept_quote=True), 400, "auto_accept_quote")
    unpriced = request(spec(target_id=UNPRICED["id"]), auto_accept_quote=True)
    assert org.reads(RequestRefused, lambda client: client.experiments.create(unpriced)).status_code == 400
    assert org.http.get("/experiments").json()["total"] == 1


@lab_holds("4.2.create.1")
def test_orders_share_one_project(org):
    codes = [org.made()["experiment_code"] for _ in range(2)]
    codes.append(org.http.get("/experiments").json()["items"][0]["code"])
    projects = {re.fullmatch(r"([A-Z0-9]+-\d{3})-\d{3}", code)[1] for code in codes}
    assert len(projects) == 1
    assert len(set(codes)) == 2


@client_holds("4.2.create.2.header", "4.2.create.2.conflict", "7.400.conflict")
@lab_holds("4.2.create.2.header", "4.2.create.2.conflict", "7.400.conflict")
@pytest.mark.parametrize(
    ("in_body", "in_header"),
    [(None, "x402-exact"), ("mpp-spt", None), ("x402-exact", "x402-exact"), MACHINE, MACHINE[::-1], (None, "cash"), ("mpp-spt", "cash")],
)  # fmt: skip
def test_header_and_body_select_alike(org, in_body, in_header):
    def create(client):
        order = request(auto_accept_quote=True, payment_method=in_body)
        return client.experiments.create(order, payment_header=in_header)

    selected = {"payment": {"method": in_body}} if in_body else {}
    answer = org.http.post(
        "/experiments",
        json={"experiment_spec": spec(), "name": "x", "auto_accept_quote": True, **selected},
        headers={HEADER: in_header} if in_header else {},
    )
    if in_header == "cash" or (None not in (in_body, in_header) and in_body != in_header):
        assert str(in_header) in str(org.refuses(create))
        assert refused(answer, 400).get("code") == ("payment_method_selector_conflict" if in_body else None)
    else:
        (method,) = answer.json()["payment"]["methods"]
        assert create(org.client).payment.methods == (method,) == (in_body or in_header,)


@lab_holds("4.2.create.5", "4.2.create.6")
def test_what_fails_after_its_invoice_voids_it_and_says_what_exists(org):
    org.lab.fault("partial_create", "/experiments", "POST")
    error = org.reads(PartialOrder, lambda client: client.experiments.create(request(auto_accept_quote=True)))
    path = f"/experiments/{error.experiment_id}"
    assert org.http.get(f"/invoices/{error.invoice_id}").json()["status"] == "void"
    refused(org.http.get(f"{path}/invoice"), 404)
    org.advance(hours=1)
    assert org.http.post(f"{path}/quote/confirm", json={}).status_code == 200
    assert org.http.get(f"{path}/invoice").json()["status"] == "open"


def estimated(http, specification):
    return http.post("/experiments/cost-estimate", json={"experiment_spec": specification})


@lab_holds("4.2.estimate.read", "4.2.estimate.nothing")
def test_a_viewer_may_request_a_price_without_effect(org):
    answer = estimated(org.viewer, spec())
    assert answer.status_code == 200
    assert answer.json()["breakdown"]["total_cents"] > 0
    assert org.http.get("/experiments").json()["total"] == 0


@lab_holds("4.2.estimate.incomplete")
@pytest.mark.parametrize("target", [PRICED, UNPRICED])
def test_no_price_is_no_error(org, target):
    answer = estimated(org.http, spec(target_id=target["id"]))
    assert answer.status_code == 200
    whole, part = answer.json()["breakdown"], answer.json()["incomplete"]
    assert (whole is None) is (target is UNPRICED)
    assert (part is None) is (target is PRICED)
    read = org.client.experiments.estimate_cost(typed(spec(target_id=target["id"])))
    assert (read.breakdown is None) is (target is UNPRICED)


@lab_holds("4.2.estimate.unknown", "7.422.estimate")
def test_an_unknown_target_has_no_price(org):
    refused(estimated(org.http, spec(target_id=UNKNOWN)), 422, UNKNOWN)
    error = org.reads(
        RequestRefused, lambda client: client.experiments.estimate_cost(typed(spec(target_id=UNKNOWN)))
    )
    assert error.status_code == 422


@client_holds("4.2.estimate.schema")
@lab_holds("4.2.estimate.schema")
@pytest.mark.parametrize(
    ("body", "status"),
    [
        *(({}, 422), ([], 422), ({"experiment_spec": spec(), "name": "x"}, 422)),
        *(({"experiment_spec": spec(n_replicates="3")}, 422), ({"experiment_spec": spec(colour="red")}, 422)),
        *(({"experiment_spec": spec(n_replicates=9)}, 400), ({"experiment_spec": spec(method=None)}, 400)),
        ({"experiment_spec": spec(sequences={"a": "MKZ"})}, 422),
    ],
)
def test_an_estimate_distinguishes_a_wrong_shape_from_a_broken_rule(shared, body, status):
    refused(shared.http.post("/experiments/cost-estimate", json=body), status)
    if status == 400:
        shared.refuses(lambda client: client.experiments.estimate_cost(typed(body["experiment_spec"])))


@lab_holds("7.404.target")
def test_an_order_for_an_unknown_target_is_404(org):
    refused(org.post(spec(target_id=UNKNOWN)), 404, UNKNOWN)
    org.reads(NotFound, lambda client: client.experiments.create(request(spec(target_id=UNKNOWN))))
    assert org.http.get("/experiments").json()["total"] == 0


def test_a_request_made_by_hand_is_not_checked_and_the_lab_refuses_it(org):
    body = {"experiment_spec": spec(method=None), "name": "x"}
    by_hand = Operation(
        request=Request(method="POST", path="/experiments", json=body), read=lambda answer: answer
    )
    assert "method" in str(org.reads(RequestRefused, lambda client: client.run(by_hand)))
    empty = Operation(
        request=Request(method="POST", path="/experiments", json=NO_BODY), read=lambda answer: answer
    )
    assert org.reads(RequestRefused, lambda client: client.run(empty)).status_code == 415
    assert operations.experiments.create(request()).request.method == "POST"
