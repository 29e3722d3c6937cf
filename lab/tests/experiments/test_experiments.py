"""Experiments, sequences, targets and pages of lists (contract 2, 4.1 to 4.4)."""

from assay_lab.control import events
from lab_support.core import (
    PRICED,
    SEQUENCES,
    UNPRICED,
    advance,
    get,
    order,
    refusal,
    spec,
)


def patch(core, experiment_id, **fields):
    return core.request("PATCH", f"/experiments/{experiment_id}", json_body=fields).body


def test_the_detail_resolves_the_target_and_shows_the_defaults(core):
    experiment_id = order(core).body["experiment_id"]
    detail = get(core, f"/experiments/{experiment_id}")
    specification = detail["experiment_spec"]
    assert specification["target"]["target_catalog_id"] == PRICED["id"]
    assert "target_id" not in specification
    assert specification["n_replicates"] == 3
    assert specification["antigen_concentrations"] == [1000.0, 316.2, 100.0, 31.6, 0.0]
    assert {name: value["aa_string"] for name, value in specification["sequences"].items()} == SEQUENCES
    assert detail["code"] == "LAB-001-001"
    assert detail["costs"]["type"] == "estimate"
    assert detail["provider_invoice_url"] is None


def test_sequences_are_stored_in_upper_case_with_their_metadata(core):
    sequences = {
        "fab": {"aa_string": "mkv:ghi", "control": True, "metadata": {"note": [1, {"provider_x": None}]}}
    }
    experiment_id = order(core, spec(sequences=sequences)).body["experiment_id"]
    (row,) = get(core, f"/experiments/{experiment_id}/sequences")["items"]
    assert (row["aa_preview"], row["length"], row["is_control"]) == ("MKV:GHI", 6, True)
    whole = get(core, f"/sequences/{row['id']}")
    assert whole["aa_string"] == "MKV:GHI"
    assert whole["metadata"] == sequences["fab"]["metadata"]
    assert whole["experiment"]["experiment_status"] == "draft"


def test_a_sequence_without_a_name_gets_one(core):
    made = order(core, spec(sequences={"sequence 3": "MKT"})).body
    path = f"/experiments/{made['experiment_id']}"
    entries = [{"aa_string": "MKV"}, {"aa_string": "MKA", "name": "own"}, {"aa_string": "MKL", "name": None}]
    body = {"experiment_code": made["experiment_code"], "sequences": entries}
    answer = core.request("POST", "/sequences", json_body=body)
    assert answer.body["added_count"] == 3
    names = ["sequence 3", "sequence 2", "own", "sequence 4"]
    assert [row["name"] for row in get(core, f"{path}/sequences")["items"]] == names
    assert list(get(core, path)["experiment_spec"]["sequences"]) == names
    twice = {"experiment_code": made["experiment_code"], "sequences": [{"aa_string": "MKV"}]}
    assert refusal(core, "POST", "/sequences", json_body=twice).status == 400


def test_patching_a_draft(core):
    experiment_id = order(core).body["experiment_id"]
    assert patch(core, experiment_id)["updated"] is False
    assert patch(core, experiment_id, name="test", n_replicates=3)["updated"] is True
    assert patch(core, experiment_id, n_replicates=3)["updated"] is False
    changed = [{"name": "n", "aa_string": "MKVW"}]
    assert (
        patch(core, experiment_id, name="new", sequences=changed, target_id=UNPRICED["id"])["updated"] is True
    )
    detail = get(core, f"/experiments/{experiment_id}")
    assert detail["name"] == "new"
    assert list(detail["experiment_spec"]["sequences"]) == ["n"]
    assert detail["costs"]["type"] == "incomplete_estimate"
    assert detail["costs"]["total_cents"] is None


def test_a_draft_without_its_target_cannot_be_submitted(core):
    experiment_id = order(core).body["experiment_id"]
    assert patch(core, experiment_id, target_id=None)["updated"] is True
    refused = refusal(core, "POST", f"/experiments/{experiment_id}/submit")
    assert (refused.status, "target_id: required" in refused.message) == (400, True)


def test_the_webhook_of_a_canceled_draft_without_its_target_stays_editable(core):
    """Contract 4.2, PATCH rule 2."""
    experiment_id = order(core).body["experiment_id"]
    patch(core, experiment_id, target_id=None)
    events.trigger_event(core.lab, "cancel", events.body_of("cancel")(experiment_id=experiment_id))
    assert get(core, f"/experiments/{experiment_id}")["status"] == "canceled"
    assert patch(core, experiment_id)["updated"] is False
    assert patch(core, experiment_id, webhook_url="https://example.org/hook")["updated"] is True


def test_targets(core):
    every = get(core, "/targets")
    assert "details" not in every["items"][0]
    assert "details" in get(core, "/targets", detailed="true")["items"][0]
    assert get(core, f"/targets/{UNPRICED['id']}")["pricing"] is None
    assert get(core, "/targets", sort="-catalog_number", limit="1")["items"][0] == every["items"][-1]


def test_conjugated_targets_are_listed_on_request_only_and_can_be_ordered(core):
    usual, every = get(core, "/targets")["items"], get(core, "/targets", show_conjugated="true")["items"]
    (conjugated,) = [target for target in every if target not in usual]
    assert get(core, f"/targets/{conjugated['id']}")["details"]["conjugated"] is True
    assert order(core, spec(target_id=conjugated["id"])).status == 201


def test_the_search_of_targets_looks_into_names_and_catalog_numbers_only(core):
    # contract 4.1: searchable (name/code) columns; contract 4.4: name and vendor have filters of their own
    every = get(core, "/targets")["items"]
    for target in every:
        for field in ("name", "catalog_number"):
            assert target in get(core, "/targets", search=target[field].lower())["items"]
        for field in ("vendor_name", "uniprot_id"):
            if target[field]:
                assert get(core, "/targets", search=target[field])["total"] == 0
    vendor = every[0]["vendor_name"]
    assert get(core, "/targets", vendor_name=vendor)["total"] == sum(
        t["vendor_name"] == vendor for t in every
    )


def test_epitope_binning_has_no_replicates_in_its_results(core):
    # contract 2.2: n_replicates is rejected for it
    four = {letter: "MKV" + letter for letter in "ACDE"}
    specification = spec(experiment_type="epitope_binning", method=None, sequences=four)
    experiment_id = order(core, specification, auto_accept_quote=True).body["experiment_id"]
    advance(core, days=16)
    (result,) = get(core, f"/experiments/{experiment_id}/results")["items"]
    assert result["metadata"]["n_replicates"] is None
