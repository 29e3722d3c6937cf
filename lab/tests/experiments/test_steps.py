"""What a caller may do at which step: PATCH, submit, confirm, invoice (contract 3, 4.2, 4.3 and 7)."""

import pytest

from assay_lab.experiments.state_machine import force_status
from assay_lab.vocabulary import ExperimentStatus
from lab_support.core import UNPRICED, get, lab_core, order, refusal, spec, to_quote

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
        force_status(
            core.lab, db, row, ExperimentStatus(status), core.lab.clock.now(core.seeded.organization_id)
        )


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


def test_a_request_that_outruns_the_bookkeeping_finds_the_quote_expired(core):
    experiment_id = to_quote(core)
    with core.lab.store.transaction() as db:
        # As on a running clock, when the time has come and the lab's own step has not been made yet.
        past = core.lab.clock.now(core.seeded.organization_id)
        db.run("UPDATE quotes SET valid_until = ? WHERE experiment_id = ?", past, experiment_id)
    refused = refusal(core, "POST", f"/experiments/{experiment_id}/quote/confirm", json_body={})
    assert (refused.status, "expired" in refused.message) == (409, True)
    assert get(core, f"/experiments/{experiment_id}")["status"] == "quote_sent"
