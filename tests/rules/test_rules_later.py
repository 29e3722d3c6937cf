"""The rules for what follows an order: changes, quotes, invoices, sequences (contract 4.2 and 4.3), on both sides."""

import pytest

from lab_support.core import spec
from prefect_assay.errors import Conflict, NotReady
from prefect_assay.service.models.sequences import ProteinSequence, SequenceEntry
from prefect_assay.service.models.vocabulary import ExperimentStatus
from support.lab.organisations import refused
from support.rules.register import lab_holds

JSON = {"content-type": "application/json"}
STATUSES = [*ExperimentStatus]
EDITABLE = {"draft", "in_review"}


def designs(*entries):
    return [ProteinSequence(**entry) for entry in entries]


def patch(org, experiment_id, body):
    return org.http.patch(f"/experiments/{experiment_id}", json=body)


@lab_holds("4.2.patch.1", "4.2.patch.2", "7.409.modify")
@pytest.mark.parametrize("status", STATUSES)
def test_most_fields_are_closed_after_the_draft_and_open_in_review(org, status):
    experiment_id = org.made()["experiment_id"]
    if status != "draft":
        org.lab.event("force_status", experiment_id, status=status)
    for body in (
        {"name": "new"},
        {"description": "new"},
        {"n_replicates": 2},
        {"parameters": {"a": 1}},
        {"antigen_concentrations": [1.0]},
        {"sequences": [{"name": "z", "aa_string": "MKV"}]},
        {"target_id": spec()["target_id"]},
        {"name": "new", "webhook_url": "https://example.org/x"},
    ):
        answer = patch(org, experiment_id, body)
        if status in EDITABLE:
            assert answer.status_code == 200, answer.text
        else:
            refused(answer, 409, status)
            org.reads(Conflict, lambda client: client.experiments.modify(experiment_id, name="new"))
    # Naming one is enough, whatever its value. A field that no experiment has is a 400 in every status.
    for body in ({"n_replicates": 9}, {"name": ""}, {"sequences": []}, {"name": 1, "color": "red"}):
        refused(patch(org, experiment_id, body), 400 if status in EDITABLE else 409)
    for body in ({"color": "red"}, {"webhook_url": "http://example.org"}, [], "name"):
        refused(patch(org, experiment_id, body), 400)
    assert patch(org, experiment_id, {"webhook_url": "https://example.org/y"}).json()["updated"] is True
    assert org.client.experiments.modify(experiment_id, webhook_url=None).updated is True


def test_a_sequence_that_the_draft_holds_already_is_a_duplicate(org):
    made = org.made()
    held = {
        "experiment_code": made["experiment_code"],
        "sequences": [{"name": "new", "aa_string": "MKTAYIAKQR"}],
    }
    refused(org.http.post("/sequences", json=held), 400, "duplicate")
    assert org.http.get(f"/experiments/{made['experiment_id']}/sequences").json()["total"] == 3


@lab_holds("4.2.patch.empty")
def test_an_empty_change_is_fine(org):
    experiment_id = org.made()["experiment_id"]
    answer = patch(org, experiment_id, {})
    assert (answer.status_code, answer.json()["updated"]) == (200, False)
    org.lab.event("force_status", experiment_id, status="done")
    assert patch(org, experiment_id, {}).status_code == 200
    assert org.client.experiments.modify(experiment_id).updated is False


@lab_holds("4.2.quote.later", "4.2.invoice.submit", "4.2.invoice.confirm", "4.2.invoice.exists")
@lab_holds("7.404.quote", "7.404.invoice")
def test_quote_and_invoice_come_one_after_the_other(org):
    experiment_id = org.made()["experiment_id"]
    path = f"/experiments/{experiment_id}"
    submit, confirm = f"POST {path}/submit", f"POST {path}/quote/confirm"

    def waits(next_call=None):
        if next_call:
            refused(org.http.get(f"{path}/invoice"), 404, next_call)
            assert next_call in str(
                org.reads(NotReady, lambda client: client.experiments.get_invoice(experiment_id))
            )
        else:
            refused(org.http.get(f"{path}/invoice"), 404)

    refused(org.http.get(f"{path}/quote"), 404)
    org.reads(NotReady, lambda client: client.experiments.get_quote(experiment_id))
    waits(submit)
    refused(org.http.post(f"{path}/quote/confirm", json={}), 404)
    assert org.http.post(f"{path}/submit").json()["status"] == "waiting_for_confirmation"
    refused(org.http.get(f"{path}/quote"), 404)
    waits()
    org.advance(hours=1)
    quote = org.http.get(f"{path}/quote").json()
    assert {"amount_total", "amount_subtotal", "currency", "status", "expires_at"} <= set(quote)
    waits(confirm)
    accepted = org.http.post(f"{path}/quote/confirm", json={}).json()
    invoice = org.http.get(f"{path}/invoice").json()
    assert set(invoice) >= {"experiment_id", "status", "provider_invoice_url"}
    assert invoice["provider_invoice_url"] == accepted["hosted_invoice_url"]
    assert org.client.experiments.get_invoice(experiment_id).status == invoice["status"]


@lab_holds("4.2.quote.once")
def test_a_quote_is_accepted_once(org):
    experiment_id = org.quoted()
    path = f"/experiments/{experiment_id}/quote/confirm"
    quote_id = org.http.get("/quotes").json()["items"][0]["id"]
    assert org.http.post(path, json={}).status_code == 200
    for again in (path, f"/quotes/{quote_id}/confirm"):
        refused(org.http.post(again, json={}), 409, "the quote is accepted and cannot be accepted")
    refused(org.http.post(f"/quotes/{quote_id}/reject", json={"reason": "price"}), 409)
    org.reads(Conflict, lambda client: client.experiments.confirm_quote(experiment_id))
    expired = org.quoted()
    org.lab.event("expire_quote", expired)
    refused(org.http.post(f"/experiments/{expired}/quote/confirm", json={}), 409)
    org.reads(Conflict, lambda client: client.experiments.confirm_quote(expired))


@lab_holds("shapes.quote.body")
def test_confirming_needs_a_body(org):
    path = f"/experiments/{org.quoted()}/quote/confirm"
    refused(org.http.post(path), 415)
    refused(org.http.post(path, content=b"null", headers=JSON), 400)
    refused(org.http.post(path, json={"coupon": "x"}), 400, "coupon")
    assert org.http.post(path, json={"purchase_order_number": "PO-1", "notes": "x"}).status_code == 200


@lab_holds("shapes.quote.reject")
def test_a_rejected_quote_makes_a_draft(org):
    experiment_id = org.quoted()
    quote_id = org.http.get("/quotes").json()["items"][0]["id"]
    answer = org.http.post(f"/quotes/{quote_id}/reject", json={"reason": "scope", "feedback": "too much"})
    assert set(answer.json()) == {"id", "status"}
    assert org.http.get(f"/experiments/{experiment_id}").json()["status"] == "draft"
    refused(org.http.post(f"/quotes/{quote_id}/confirm", json={}), 409)
    org.http.post(f"/experiments/{experiment_id}/submit")
    org.advance(hours=1)
    assert org.http.get(f"/experiments/{experiment_id}").json()["status"] == "quote_sent"


@lab_holds("4.2.submit.draft")
def test_a_draft_is_submitted_once(org):
    experiment_id = org.made()["experiment_id"]
    answer = org.http.post(f"/experiments/{experiment_id}/submit").json()
    assert (answer["previous_status"], answer["status"]) == ("draft", "waiting_for_confirmation")
    refused(org.http.post(f"/experiments/{experiment_id}/submit"), 409, "waiting_for_confirmation")
    org.reads(Conflict, lambda client: client.experiments.submit(experiment_id))


@lab_holds("4.3.draft", "7.409.sequences")
@pytest.mark.parametrize("status", [status for status in STATUSES if status != "draft"])
def test_sequences_are_added_to_a_draft_only(org, status):
    made = org.made()
    org.lab.event("force_status", made["experiment_id"], status=status)
    body = {"experiment_code": made["experiment_code"], "sequences": [{"name": "z", "aa_string": "MKV"}]}
    refused(org.http.post("/sequences", json=body), 409, "draft")
    new = designs({"name": "z", "aa_string": "MKV"})
    org.reads(Conflict, lambda client: client.sequences.add(made["experiment_code"], new))


@lab_holds("4.3.answer")
def test_adding_returns_how_many_where_and_which(org):
    made = org.made()
    entries = [
        {"name": "y", "aa_string": "gghh"},
        {"name": "z", "aa_string": "MKV", "control": True, "metadata": [1]},
    ]
    body = {"experiment_code": made["experiment_code"], "sequences": entries}
    answer = org.http.post("/sequences", json=body)
    assert answer.status_code == 201
    assert set(answer.json()) == {"added_count", "experiment_code", "experiment_id", "sequence_ids"}
    assert (answer.json()["added_count"], len(answer.json()["sequence_ids"])) == (2, 2)
    stored = org.http.get(f"/sequences/{answer.json()['sequence_ids'][0]}").json()
    assert stored["aa_string"] == "GGHH"


@pytest.mark.parametrize(
    "metadata", [[1], "linker of round 2", 7, 0, False, [], {"type": "VHH"}, {"a": {"b": None}}]
)
def test_metadata_is_any_json_value(org, metadata):
    # contract 2.4: free-form
    code = org.made()["experiment_code"]
    added = org.client.sequences.add(
        code, [SequenceEntry("z", "MKV", metadata=metadata), SequenceEntry("y", "GHI")]
    )
    first, second = (org.client.sequences.get(one).metadata for one in added.sequence_ids)
    assert (first, second) == (metadata, None)
    odd = SequenceEntry("z", "MKV", metadata={"score": float("nan")})
    assert "not JSON" in str(org.refuses(lambda client: client.sequences.add(code, [odd])))


def test_an_experiment_needs_no_name(org):
    # contract 4.2, CreateExpRequest: only the specification is required
    made = org.http.post("/experiments", json={"experiment_spec": spec()})
    assert made.status_code == 201, made.text
    (row,) = org.http.get("/experiments").json()["items"]
    assert (row["name"], row["id"]) == (None, made.json()["experiment_id"])
    assert org.http.get(f"/experiments/{row['id']}").json()["name"] is None
    assert org.http.post(f"/experiments/{row['id']}/submit").status_code == 200
    org.lab.advance(days=30)
