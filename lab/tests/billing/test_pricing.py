"""Estimates and `costs` (contract 2.5, 4.2 and 9; service shapes, Cost estimate)."""

import pytest

from lab_support.core import (
    BY_LOT,
    EPOCH,
    PRICED,
    UNPRICED,
    advance,
    get,
    lab_core,
    order,
    refusal,
    spec,
    to_quote,
)

ESTIMATE = "/experiments/cost-estimate"
UNKNOWN = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def early():
    """A lab whose time is a day before pricing v1."""
    made = lab_core(pricing_v1=EPOCH.replace(day=3))
    yield made
    made.close()


def estimate(core, specification):
    return core.request("POST", ESTIMATE, json_body={"experiment_spec": specification}).body


def test_the_parts_of_an_estimate_carry_both_published_sets_of_fields(core):
    body = estimate(core, spec(n_replicates=2))
    assay, materials = body["breakdown"]["assay"], body["breakdown"]["materials"]
    assert assay["name"] == assay["experiment_type"] == "affinity"
    assert (assay["n_replicates"], assay["sequence_count"]) == (2, 3)
    assert assay["base_cents"] == 3 * assay["unit_price_cents"]
    assert assay["replicate_addon_cents"] == 3 * assay["replicate_price_cents"]
    assert (materials["type"], materials["sequence_count"]) == ("per_sequence", 3)
    assert body["breakdown"]["pricing_version"] == "v1_2025-01-01"
    assert body["warnings"] == []


def test_a_target_by_the_lot_lists_the_lots_and_warns_of_what_is_left_over(core):
    body = estimate(core, spec(target_id=BY_LOT["id"], n_replicates=3))
    materials = body["breakdown"]["materials"]
    smallest = min(BY_LOT["pricing"]["lot_prices"], key=lambda lot: lot["num_sequences"])
    assert materials["type"] == "per_broken_lot"
    assert [(lot["lot_price_cents"], lot["quantity"]) for lot in materials["lots"]] == [
        (smallest["price_usdcent"], 1)
    ]
    assert materials["subtotal_cents"] == smallest["price_usdcent"]
    assert materials["price_per_sequence_cents"] == -(-smallest["price_usdcent"] // 3)
    assert body["warnings"] == [
        f"the target is sold by the lot: the lots are enough for {smallest['num_sequences']} sequences, not only 3"
    ]
    full = {f"s{n}": "MKV" + "A" * n for n in range(smallest["num_sequences"])}
    assert estimate(core, spec(target_id=BY_LOT["id"], n_replicates=1, sequences=full))["warnings"] == []


def test_a_missing_price_is_warned_of(core):
    assert estimate(core, spec())["warnings"] == []
    incomplete = estimate(core, spec(target_id=UNPRICED["id"], n_replicates=1))
    assert incomplete["warnings"] == ["this is not a price: the target has no self-service pricing"]
    binning = spec(experiment_type="epitope_binning", method=None, sequences={c: "MKV" + c for c in "ACDE"})
    body = estimate(core, binning)
    assert body["warnings"] == []
    assert (
        body["breakdown"]["assay"]["n_replicates"],
        body["breakdown"]["assay"]["replicate_addon_cents"],
    ) == (1, 0)


def test_the_two_causes_of_a_422_differ_in_their_error(core, early):
    body = {"experiment_spec": spec(target_id=UNKNOWN)}
    unknown = refusal(core, "POST", ESTIMATE, json_body=body)
    before = refusal(early, "POST", ESTIMATE, json_body={"experiment_spec": spec()})
    assert (unknown.status, before.status) == (422, 422)
    assert unknown.message == f"experiment_spec.target_id: target {UNKNOWN} is not in the catalog"
    assert before.message == "pricing unavailable: pricing v1 begins on 2026-03-03"
    advance(early, days=1)
    assert estimate(early, spec())["breakdown"]["pricing_version"] == "v1_2026-03-03"


def test_an_experiment_from_before_pricing_has_no_costs_until_it_is_quoted(early):
    answer = order(early)
    assert answer.status == 201
    assert "costs" not in answer.body
    experiment_id = answer.body["experiment_id"]
    refused = refusal(
        early,
        "POST",
        "/experiments",
        json_body={"experiment_spec": spec(), "name": "x", "auto_accept_quote": True},
    )
    assert (refused.status, "pricing v1 begins" in refused.message) == (400, True)
    advance(early, days=2)
    assert "costs" not in get(early, f"/experiments/{experiment_id}")
    assert order(early).body["costs"]["type"] == "estimate"
    early.request("POST", f"/experiments/{experiment_id}/submit")
    advance(early, hours=1)
    assert get(early, f"/experiments/{experiment_id}")["costs"]["type"] == "quoted"


def test_costs_have_four_forms(core):
    def costs(experiment_id):
        return get(core, f"/experiments/{experiment_id}")["costs"]

    draft = order(core).body
    assert draft["costs"] == costs(draft["experiment_id"])
    assert set(draft["costs"]) == {"type", "breakdown"}
    incomplete = order(core, spec(target_id=UNPRICED["id"])).body["costs"]
    assert set(incomplete) == {
        "type",
        "pricing_version",
        "assay",
        "materials_unavailable",
        "total_cents",
    }
    quoted = to_quote(core)
    assert set(costs(quoted)) == {
        "type",
        "amount_cents",
        "currency",
        "status",
        "provider_quote_url",
        "expires_at",
    }
    assert costs(quoted)["status"] == "open"
    core.request("POST", f"/experiments/{quoted}/quote/confirm", json_body={})
    invoiced = costs(quoted)
    assert set(invoiced) == {"type", "amount_cents", "currency", "status", "provider_invoice_url"}
    assert (invoiced["type"], invoiced["status"]) == ("invoiced", "open")
    assert invoiced["amount_cents"] == draft["costs"]["breakdown"]["total_cents"]


def test_a_draft_without_its_target_shows_no_price(core):
    # contract 2.5: an estimate without the target's materials is no estimate of this order
    path = f"/experiments/{order(core).body['experiment_id']}"
    whole = get(core, path)["costs"]
    core.request("PATCH", path, json_body={"target_id": None})
    assert "costs" not in get(core, path)
    core.request("PATCH", path, json_body={"target_id": PRICED["id"]})
    assert get(core, path)["costs"] == whole
