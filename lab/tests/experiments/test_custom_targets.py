"""Requests for custom targets (service shapes, Targets)."""

import pytest

from assay_lab.experiments.targets import decide_custom_target
from assay_lab.kernel.refusals import Refusal
from assay_lab.service.seeding import add_organization, reset_lab
from lab_support.core import PRICED, advance, get, lab_core, order, refusal, spec

PATH = "/targets/request-custom"
WANTED = {"name": "Our antigen", "product_id": "OWN-1", "sequence": "mkvghi"}


def ask(core, **changes):
    body = {name: value for name, value in {**WANTED, **changes}.items() if value is not None}
    return core.request("POST", PATH, json_body=body)


def decide(core, request_id, **decision):
    with core.lab.store.transaction() as db:
        now = core.lab.clock.now(core.seeded.organization_id)
        return decide_custom_target(core.lab, db, request_id, now, **decision)


def test_a_request_is_stored_and_waits_for_staff(core):
    answer = ask(core)
    assert answer.status == 201
    assert answer.body["status"] == "pending_review"
    assert answer.body["sequence"] == "MKVGHI"
    assert get(core, f"{PATH}/{answer.body['id']}") == answer.body
    assert ask(core, product_id="OWN-2", sequence=None, pdb_id="7xyz").body["pdb_id"] == "7xyz"
    listed = get(core, PATH)
    assert [item["product_id"] for item in listed["items"]] == ["OWN-2", "OWN-1"]
    assert listed["items"][1] == answer.body
    assert get(core, PATH, status="approved")["total"] == 0
    assert get(core, PATH, filter="eq(product_id,OWN-1)")["total"] == 1


def test_a_known_product_id_is_a_conflict_within_the_organisation(core):
    ask(core)
    assert refusal(core, "POST", PATH, json_body=WANTED | {"name": "again"}).status == 409
    other = add_organization(core.lab, "other", "Other")
    assert core.request("POST", PATH, token=other.member_token, json_body=WANTED).status == 201
    assert (
        refusal(core, "POST", PATH, json_body=WANTED | {"product_id": PRICED["catalog_number"]}).status == 409
    )


def test_reading_needs_the_organisation_and_writing_a_member(core):
    request_id = ask(core).body["id"]
    other = add_organization(core.lab, "other", "Other")
    assert refusal(core, "GET", f"{PATH}/{request_id}", token=other.member_token).status == 404
    assert core.request("GET", PATH, token=other.member_token).body["total"] == 0
    viewer = core.seeded.viewer_token
    assert refusal(core, "POST", PATH, token=viewer, json_body=WANTED | {"product_id": "V"}).status == 403
    assert core.request("GET", f"{PATH}/{request_id}", token=viewer).status == 200
    assert refusal(core, "GET", f"{PATH}/x").status == 404
    assert refusal(core, "POST", PATH).status == 415


def test_an_approved_target_can_be_ordered_by_its_organisation_only(core):
    request_id = ask(core).body["id"]
    price = {"type": "per_sequence", "price_per_sequence_cents": 5_000}
    decided = decide(core, request_id, approved=True, pricing=price)
    assert decided["status"] == "approved"
    target = get(core, f"/targets/{decided['target_id']}")
    assert (target["name"], target["catalog_number"], target["pricing"]) == ("Our antigen", "OWN-1", price)
    assert target["details"]["sequence"] == "MKVGHI"
    assert get(core, "/targets", search="OWN-1", selfservice_only="true")["total"] == 1
    experiment_id = order(core, spec(target_id=target["id"]), auto_accept_quote=True).body["experiment_id"]
    shown = get(core, f"/experiments/{experiment_id}")["experiment_spec"]["target"]
    assert (shown["name"], shown["sequence"]) == ("Our antigen", "MKVGHI")
    advance(core, days=16)
    assert get(core, f"/experiments/{experiment_id}/results")["total"] == 1

    other = add_organization(core.lab, "other", "Other").member_token
    assert refusal(core, "GET", f"/targets/{target['id']}", token=other).status == 404
    assert core.request("GET", "/targets", token=other, query={"search": "OWN-1"}).body["total"] == 0
    body = {"experiment_spec": spec(target_id=target["id"]), "name": "x"}
    assert refusal(core, "POST", "/experiments", token=other, json_body=body).status == 404
    assert (
        refusal(
            core,
            "POST",
            "/experiments/cost-estimate",
            token=other,
            json_body={"experiment_spec": spec(target_id=target["id"])},
        ).status
        == 422
    )


def test_an_approved_target_without_a_price_is_quoted_by_hand(core):
    decided = decide(core, ask(core).body["id"], approved=True, reason="we can make it")
    assert decided["reason"] == "we can make it"
    costs = order(core, spec(target_id=decided["target_id"])).body["costs"]
    assert costs["type"] == "incomplete_estimate"


def test_a_decision_is_final_and_a_rejected_request_is_in_no_catalog(core):
    request_id = ask(core).body["id"]
    assert decide(core, request_id, approved=False, reason="toxic")["target_id"] is None
    assert get(core, f"{PATH}/{request_id}")["status"] == "rejected"
    assert get(core, "/targets", search="OWN-1")["total"] == 0
    with pytest.raises(Refusal, match="rejected already"):
        decide(core, request_id, approved=True)
    with pytest.raises(Refusal, match="not found"):
        decide(core, "x", approved=True)


def test_approved_targets_outlive_a_restart_and_not_a_reset(tmp_path):
    core = lab_core(database=tmp_path / "lab.sqlite3")
    target_id = decide(core, ask(core).body["id"], approved=True)["target_id"]
    core.close()
    core = lab_core(database=tmp_path / "lab.sqlite3")
    assert get(core, f"/targets/{target_id}")["id"] == target_id
    core.seeded = reset_lab(core.lab)
    assert refusal(core, "GET", f"/targets/{target_id}").status == 404
    assert get(core, PATH)["total"] == 0
    core.close()
