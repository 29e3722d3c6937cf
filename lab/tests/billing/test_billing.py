"""Create rules, quotes, invoices and payment (contract 2.6 to 2.8, 4.2 and 4.5)."""

import base64
import json
from types import SimpleNamespace

import pytest

from assay_lab.billing.pricing import line_items
from assay_lab.rails import x402
from lab_support.core import advance, get, order, refusal, spec, to_quote
from lab_support.tool_client import x402_credential

X402 = {"payment": {"method": "x402-exact"}}


def total(core):
    body = {"experiment_spec": spec()}
    return core.request("POST", "/experiments/cost-estimate", json_body=body).body["breakdown"]["total_cents"]


def test_auto_accept_on_a_hosted_invoice(core):
    answer = order(core, auto_accept_quote=True)
    assert answer.status == 201
    body = answer.body
    assert body["status"] == "waiting_for_confirmation"
    assert body["provider_invoice_id"].startswith("in_")
    assert "/portal/invoices/" in body["provider_hosted_invoice_url"]
    invoice = get(core, f"/experiments/{body['experiment_id']}/invoice")
    assert invoice == {
        "experiment_id": body["experiment_id"],
        "status": "draft",
        "provider_invoice_url": body["provider_hosted_invoice_url"],
    }
    advance(core, hours=1)
    assert get(core, f"/experiments/{body['experiment_id']}")["status"] == "waiting_for_materials"
    assert get(core, f"/invoices/{body['provider_invoice_id']}")["status"] == "open"


def test_findings_of_selector_and_auto_accept_come_with_all_others(core):
    """Contract 2.2 and 7: validation errors on create are accumulated."""
    body = {
        "experiment_spec": spec(
            experiment_type="thermostability",
            method=None,
            target_id=None,
            sequences={"a": "MKX"},
            n_replicates=9,
        ),
        "name": "x",
        "auto_accept_quote": True,
        **X402,
    }
    for header, words in (
        ("mpp-spt", "the header says 'mpp-spt'"),
        ("junk", "unknown payment method 'junk'"),
    ):
        refused = refusal(
            core, "POST", "/experiments", json_body=body, headers={"X-Service-Payment-Method": header}
        )
        assert (refused.status, refused.code) == (400, "payment_method_selector_conflict")
        for part in (words, "n_replicates", "letters 'X'", "auto_accept_quote: needs target_id"):
            assert part in refused.message
    assert get(core, "/experiments")["total"] == 0


def test_an_unknown_target_stays_a_404_whatever_accepts_its_quote(core):
    unknown = spec(target_id="00000000-0000-4000-8000-000000000000")
    body = {"experiment_spec": unknown, "name": "x", "auto_accept_quote": True}
    refused = refusal(core, "POST", "/experiments", json_body=body)
    assert refused.status == 404
    assert "auto_accept_quote" not in refused.message


@pytest.mark.parametrize("by", ["experiment", "quote"])
def test_a_confirmation_takes_no_other_rail_than_the_experiments(core, by):
    """Contract 5.10: the header selects a rail, and 4.2: the rail is the experiment's for life."""
    for selected, other in ((X402, "mpp-spt"), ({}, "x402-exact")):
        experiment_id = to_quote(core, **selected)
        quote_id = get(core, f"/experiments/{experiment_id}")["provider_quote_id"]
        path = (
            f"/experiments/{experiment_id}/quote/confirm"
            if by == "experiment"
            else f"/quotes/{quote_id}/confirm"
        )
        for header, status, words in ((other, 409, f"not by {other}"), ("junk", 400, "'junk'")):
            headers = {"X-Service-Payment-Method": header}
            refused = refusal(core, "POST", path, json_body={}, headers=headers)
            assert refused.status == status
            assert words in refused.message
        assert get(core, f"/experiments/{experiment_id}")["status"] == "quote_sent"
        headers = {"X-Service-Payment-Method": "x402-exact"} if selected else {}
        assert core.request("POST", path, json_body={}, headers=headers).status == 200


def test_the_quote_equals_the_estimate(core):
    experiment_id = to_quote(core)
    quote = get(core, f"/experiments/{experiment_id}/quote")
    assert quote["amount_total"] == quote["amount_subtotal"] == total(core)
    quote_id = get(core, f"/experiments/{experiment_id}")["provider_quote_id"]
    detail = get(core, f"/quotes/{quote_id}")
    cents = [line["total_cents"] for line in detail["line_items"]]
    assert (sum(cents), detail["tax_cents"]) == (total(core), 0) == (detail["total_cents"], 0)
    assert {type(amount) for amount in (*cents, quote["amount_total"], total(core))} == {int}
    assert get(core, "/quotes")["items"][0]["status"] == detail["status"] == "pending"


def test_a_quote_has_the_items_of_the_estimate():
    target = {"name": "Human EGFR"}
    assay = {"name": "affinity by BLI", "subtotal_cents": 179_000, "replicate_addon_cents": 60_000}
    price = SimpleNamespace(n_sequences=10, assay=assay, target=target, materials={"subtotal_cents": 65_900})
    items = [(line["description"], line["total_cents"]) for line in line_items(price)]
    assert items == [
        ("affinity by BLI assay", 119_000),
        ("replicates", 60_000),
        ("target: Human EGFR", 65_900),
    ]


def credential(challenge):
    """The header that pays; of the same nonce every time."""
    return {"PAYMENT-SIGNATURE": x402_credential(challenge.body)}


def test_paying_by_x402_settles_once_and_starts_the_work(core):
    accepted = order(core, auto_accept_quote=True, **X402)
    assert (accepted.status, accepted.body["status"], accepted.body["payment"]["kind"]) == (
        200,
        "accepted",
        "machine",
    )
    invoice_id = accepted.body["invoice_id"]
    assert get(core, f"/invoices/{invoice_id}")["status"] == "open"
    path = accepted.body["payment"]["pay_url"].removeprefix("/api/v1")
    assert path == f"/invoices/{invoice_id}/pay"
    challenge = core.request("POST", path)
    assert challenge.status == 402
    assert challenge.body["accepts"][0]["amount"] == str(total(core) * 10_000)
    assert json.loads(base64.b64decode(challenge.headers[x402.REQUIRED_HEADER])) == challenge.body
    headers = credential(challenge)
    paid = core.request("POST", path, headers=headers)
    assert (paid.status, paid.body["status"], paid.body["already_paid"]) == (200, "paid", False)
    assert paid.body["settlement_reference"].startswith("0x")
    again = core.request("POST", path, headers=headers)
    assert (again.status, again.body["already_paid"]) == (200, True)
    assert "settlement_reference" not in again.body
    with core.lab.store.transaction() as db:
        assert len(db.all("SELECT * FROM settlements")) == 1
    experiment_id = paid.body["experiment_id"]
    assert get(core, f"/experiments/{experiment_id}")["status"] == "waiting_for_materials"
    advance(core, days=15)
    assert get(core, f"/experiments/{experiment_id}")["status"] == "done"


def test_a_nonce_pays_one_invoice_only(core):
    first, second = (order(core, auto_accept_quote=True, **X402).body["invoice_id"] for _ in range(2))
    for invoice_id, status in ((first, 200), (second, 402)):
        path = f"/invoices/{invoice_id}/pay"
        headers = credential(core.request("POST", path))
        assert core.request("POST", path, headers=headers).status == status
    assert get(core, f"/invoices/{second}")["status"] == "open"


def test_the_pay_path_refuses_another_rail(core):
    hosted = order(core, auto_accept_quote=True).body["provider_invoice_id"]
    state = core.request("POST", f"/invoices/{hosted}/pay").body
    assert (state["status"], state["already_paid"]) == ("draft", False)
    assert "/portal/invoices/" in state["hosted_invoice_url"]
    header = {"X-Service-Payment-Method": "x402-exact"}
    assert refusal(core, "POST", f"/invoices/{hosted}/pay", headers=header).status == 409
    signed = {"PAYMENT-SIGNATURE": "e30="}
    assert refusal(core, "POST", f"/invoices/{hosted}/pay", headers=signed).status == 409


def test_a_confirmed_quote_on_a_machine_rail_waits_for_its_payment(core):
    experiment_id = to_quote(core, **X402)
    pointer = core.request("POST", f"/experiments/{experiment_id}/quote/confirm", json_body={}).body[
        "payment"
    ]
    assert pointer["kind"] == "machine"
    advance(core, days=30)
    assert get(core, f"/experiments/{experiment_id}")["status"] == "waiting_for_materials"
    path = pointer["pay_url"].removeprefix("/api/v1")
    core.request("POST", path, headers=credential(core.request("POST", path)))
    advance(core, days=15)
    assert get(core, f"/experiments/{experiment_id}")["status"] == "done"
