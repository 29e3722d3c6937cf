"""What a client finds that knows the contract only, and was once answered otherwise."""

import pytest

from lab_support.core import PRICED, advance, get, lab_core, order, refusal, spec

BINNING = {"a": "MKTAYIAKQR", "b": "GSHMKLVFFA", "c": "ACDEFGHIKL", "d": "MNPQRSTVWY"}


@pytest.fixture(scope="module")
def core():
    made = lab_core()
    new(made, name="default")
    new(made, spec(n_replicates=5), name="five")
    thermal = {"experiment_type": "thermostability", "sequences": {"a": "MKTAYIAKQR"}}
    new(made, thermal, name="thermal")
    new(made, thermal, name="two words")
    yield made
    made.close()


def new(core, specification=None, **fields):
    return order(core, specification, **fields).body["experiment_id"]


def names(core, **query):
    return sorted(item["name"] for item in get(core, "/experiments", **query)["items"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("eq(at(experiment_spec,n_replicates),3)", ["default", "thermal", "two words"]),
        ("gte(float(at(experiment_spec,n_replicates)),5)", ["five"]),
        ("is_not_null(at(experiment_spec,antigen_concentrations))", ["default", "five"]),
        ("is_null(at(experiment_spec,target))", ["thermal", "two words"]),
        (
            f"eq(at(at(experiment_spec,target),target_catalog_id),{PRICED['id']})",
            ["default", "five"],
        ),
        (f'eq(at(at(experiment_spec,target),name),"{PRICED["name"]}")', ["default", "five"]),
        # The contract shows no quotes: a client that knows only it sends the bare text (4.1).
        ("in(name,default,two words)", ["default", "two words"]),
        ("contains(name, o w)", ["two words"]),
        (f"eq(at(experiment_spec,target_id),{PRICED['id']})", ["default", "five"]),
    ],
)
def test_a_filter_sees_the_specification_that_the_record_shows(core, text, expected):
    assert names(core, filter=text) == expected


def test_a_draft_without_its_target_shows_no_price():
    # contract 2.5: an estimate without the target's materials is no estimate of this order
    core = lab_core()
    path = f"/experiments/{new(core)}"
    whole = get(core, path)["costs"]
    core.request("PATCH", path, json_body={"target_id": None})
    assert "costs" not in get(core, path)
    core.request("PATCH", path, json_body={"target_id": PRICED["id"]})
    assert get(core, path)["costs"] == whole
    core.close()


def test_epitope_binning_has_no_replicates_in_its_results():
    # contract 2.2: n_replicates is rejected for it
    core = lab_core()
    wanted = spec(experiment_type="epitope_binning", method=None, sequences=BINNING)
    experiment_id = new(core, wanted, auto_accept_quote=True)
    advance(core, days=16)
    (result,) = get(core, f"/experiments/{experiment_id}/results")["items"]
    core.close()
    assert result["metadata"]["n_replicates"] is None


def test_messages_speak_the_words_of_the_wire(core):
    body = {"experiment_spec": spec(), "name": "x", "payment": {"method": "cash"}}
    answer = refusal(core, "POST", "/experiments", json_body=body)
    assert answer.message == "payment.method: Input should be 'x402-exact' or 'mpp-spt'"
    body = {"attenuation": {"allowed_actions": ["fly"]}, "name": "x", "token": "x"}
    answer = refusal(core, "POST", "/tokens/attenuate", json_body=body)
    assert answer.message.startswith("attenuation.allowed_actions.0: 'fly' is not known")
