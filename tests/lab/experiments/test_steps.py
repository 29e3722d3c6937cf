"""What a caller may do at which step: PATCH, submit, confirm, invoice (contract 3, 4.2, 4.3 and 7)."""

import pytest

from prefect_assay.lab.experiments.state_machine import force
from prefect_assay.lab.service.seeding import organization
from prefect_assay.models.vocabulary import ExperimentStatus
from support.lab.core import UNPRICED, advance, get, lab_core, order, refusal, spec, to_quote

BINNING = {
    "experiment_type": "epitope_binning",
    "method": None,
    "sequences": {letter: "MKV" + letter for letter in "ACDE"},
}


@pytest.fixture(scope="module")
def core():
    made = lab_core()
    yield made
    made.close()


def patch(core, experiment_id, **fields):
    return core.request("PATCH", f"/experiments/{experiment_id}", json_body=fields)


def put(core, experiment_id, status):
    """Lab event: into any status."""
    with core.lab.store.transaction() as db:
        row = db.one("SELECT * FROM experiments WHERE id = ?", experiment_id)
        force(core.lab, db, row, ExperimentStatus(status), core.lab.clock.now(core.seeded.organization_id))


def test_a_draft_without_its_target_can_still_be_edited(core):
    experiment_id = order(core).body["experiment_id"]
    patch(core, experiment_id, target_id=None)
    assert patch(core, experiment_id, name="renamed").body["updated"] is True
    assert patch(core, experiment_id, target_id=UNPRICED["id"]).body["updated"] is True
    assert core.request("POST", f"/experiments/{experiment_id}/submit").status == 200


def test_in_review_the_required_target_cannot_be_cleared(core):
    experiment_id = order(core).body["experiment_id"]
    put(core, experiment_id, "in_review")
    path = f"/experiments/{experiment_id}"
    refused = refusal(core, "PATCH", path, json_body={"target_id": None})
    assert (refused.status, "target_id" in refused.message) == (400, True)
    assert patch(core, experiment_id, name="renamed").body["updated"] is True


def test_a_draft_with_sequences_to_spare_can_be_edited_and_not_submitted(core):
    made = order(core, spec(**BINNING)).body
    fifth = {"experiment_code": made["experiment_code"], "sequences": [{"name": "W", "aa_string": "MKVW"}]}
    core.request("POST", "/sequences", json_body=fifth)
    assert patch(core, made["experiment_id"], name="renamed").status == 200
    refused = refusal(core, "POST", f"/experiments/{made['experiment_id']}/submit")
    assert (refused.status, "multiples of 4, not 5" in refused.message) == (400, True)
    five = [{"name": letter, "aa_string": "MKV" + letter} for letter in "ACDEF"]
    path = f"/experiments/{made['experiment_id']}"
    assert refusal(core, "PATCH", path, json_body={"sequences": five}).status == 400


@pytest.mark.parametrize("status", list(ExperimentStatus))
def test_most_fields_change_in_draft_and_in_review_only(core, status):
    experiment_id = order(core).body["experiment_id"]
    put(core, experiment_id, status)
    path = f"/experiments/{experiment_id}"
    fields = {
        "name": "n",
        "description": "d",
        "n_replicates": 2,
        "antigen_concentrations": [10.0],
        "parameters": {"x": 1},
        "target_id": UNPRICED["id"],
        "sequences": [{"name": "n", "aa_string": "MKV"}],
    }
    for name, value in fields.items():
        if status in ("draft", "in_review"):
            assert patch(core, experiment_id, **{name: value}).body["updated"] is True
        else:
            refused = refusal(core, "PATCH", path, json_body={name: value})
            assert (refused.status, name in refused.message) == (409, True)
    assert patch(core, experiment_id, webhook_url="https://example.org/x").body["updated"] is True
    for _ in range(2):  # fulfilled already: no action is taken, and that is no error
        again = patch(core, experiment_id, webhook_url="https://example.org/x")
        assert (again.status, again.body["updated"]) == (200, False)
    assert patch(core, experiment_id).body == {
        "id": experiment_id,
        "message": "nothing to change",
        "updated": False,
    }


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        ("waiting_for_confirmation", "/quote"),
        ("quote_sent", "/quote/confirm"),
        ("in_production", "poll GET"),
        ("done", "poll GET"),
        ("canceled", "create a new experiment"),
    ],
)
def test_submitting_twice_is_a_conflict_that_says_what_to_do(core, status, hint):
    experiment_id = order(core).body["experiment_id"]
    path = f"/experiments/{experiment_id}/submit"
    first = core.request("POST", path)
    assert (first.status, first.body["previous_status"], first.body["status"]) == (
        200,
        "draft",
        "waiting_for_confirmation",
    )
    put(core, experiment_id, status)
    refused = refusal(core, "POST", path)
    assert refused.status == 409
    assert refused.extra["error_kind"] == "other"
    assert refused.extra["hint"].endswith(hint) or hint in refused.extra["hint"]


def test_sequences_go_to_drafts_only(core):
    made = order(core).body
    body = {"experiment_code": made["experiment_code"], "sequences": [{"name": "x", "aa_string": "MKVW"}]}
    put(core, made["experiment_id"], "in_review")
    assert refusal(core, "POST", "/sequences", json_body=body).status == 409
    other = organization(core.lab, "other", "Other").member_token
    assert refusal(core, "POST", "/sequences", token=other, json_body=body).status == 404


def test_the_invoice_call_tells_unknown_forbidden_and_not_yet_apart(core):
    experiment_id = order(core).body["experiment_id"]
    path = f"/experiments/{experiment_id}"
    other = organization(core.lab, "third", "Third").member_token
    for unknown in ("x", "00000000-0000-4000-8000-000000000000"):
        assert refusal(core, "GET", f"/experiments/{unknown}/invoice").status == 400
    assert refusal(core, "GET", f"{path}/invoice", token=other).status == 403
    assert refusal(core, "GET", path, token=other).status == 404

    def following():
        refused = refusal(core, "GET", f"{path}/invoice")
        assert refused.status == 404
        return refused.message.rpartition("POST ")[2]

    assert following() == f"/api/v1{path}/submit"
    core.request("POST", f"{path}/submit")
    advance(core, hours=1)
    assert following() == f"/api/v1{path}/quote/confirm"
    core.request("POST", f"{path}/quote/confirm", json_body={})
    invoice = get(core, f"{path}/invoice")
    assert set(invoice) == {"experiment_id", "status", "provider_invoice_url"}


def test_a_quote_is_confirmed_once_and_in_time(core):
    experiment_id = to_quote(core)
    path = f"/experiments/{experiment_id}/quote/confirm"
    quote_id = get(core, f"/experiments/{experiment_id}")["provider_quote_id"]
    assert refusal(core, "POST", path).status == 415
    pointer = core.request("POST", path, json_body={}).body
    assert (pointer["id"], pointer["status"]) == (quote_id, "accepted")
    assert pointer["payment"]["kind"] == "hosted_invoice"
    for again in (path, f"/quotes/{quote_id}/confirm"):
        assert refusal(core, "POST", again, json_body={}).status == 409
    reject = {"reason": "price"}
    assert refusal(core, "POST", f"/quotes/{quote_id}/reject", json_body=reject).status == 409

    late = to_quote(core)
    advance(core, days=31)
    assert refusal(core, "POST", f"/experiments/{late}/quote/confirm", json_body={}).status == 409


def test_a_request_that_outruns_the_bookkeeping_finds_the_quote_expired(core):
    experiment_id = to_quote(core)
    with core.lab.store.transaction() as db:
        # As on a running clock, when the time has come and the lab's own step has not been made yet.
        past = core.lab.clock.now(core.seeded.organization_id)
        db.run("UPDATE quotes SET valid_until = ? WHERE experiment_id = ?", past, experiment_id)
    refused = refusal(core, "POST", f"/experiments/{experiment_id}/quote/confirm", json_body={})
    assert (refused.status, "expired" in refused.message) == (409, True)
    assert get(core, f"/experiments/{experiment_id}")["status"] == "quote_sent"


@pytest.mark.parametrize("reason", ["price", "scope", "timeline", "budget", "other"])
def test_a_rejected_quote_makes_a_draft_again(core, reason):
    experiment_id = to_quote(core)
    quote_id = get(core, f"/experiments/{experiment_id}")["provider_quote_id"]
    path = f"/quotes/{quote_id}/reject"
    for wrong, status in (({}, 400), ({"reason": "mood"}, 400), (None, 415)):
        assert refusal(core, "POST", path, json_body=wrong).status == status
    answer = core.request("POST", path, json_body={"reason": reason, "feedback": "x"})
    assert answer.body == {"id": quote_id, "status": "rejected"}
    assert get(core, f"/experiments/{experiment_id}")["status"] == "draft"
    assert get(core, f"/experiments/{experiment_id}/quote")["status"] == "canceled"
    core.request("POST", f"/experiments/{experiment_id}/submit")
    assert refusal(core, "GET", f"/experiments/{experiment_id}/quote").status == 404
    advance(core, hours=1)
    assert get(core, f"/experiments/{experiment_id}/quote")["status"] == "open"
