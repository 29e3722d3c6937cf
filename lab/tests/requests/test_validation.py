"""What the lab refuses (contract 2.2, 2.3, 4.2, 7 and 8): it must pass nothing that the service refuses."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from assay_lab.api import ROUTES
from assay_lab.kernel.refusals import Refusal
from assay_lab.requests.core import Call
from lab_support.core import BY_LOT, PRICED, UNPRICED, get, lab_core, order, refusal, spec


@pytest.fixture(scope="module")
def core():
    made = lab_core()
    yield made
    made.close()


def create(core, specification, **fields):
    return refusal(
        core, "POST", "/experiments", json_body={"experiment_spec": specification, "name": "x", **fields}
    )


def test_http_webhooks_need_the_flag_and_a_private_host(core):
    private = (
        *("http://127.0.0.1:9/x", "http://localhost/x", "http://[::1]:8080/x", "http://localhost./x"),
        *(
            "http://10.0.0.1/x",
            "http://192.168.1.5:8080/x",
            "http://receiver:8080/x",
            "http://receiver.internal/x",
        ),
    )
    lenient = lab_core(allow_http_webhooks=True)
    for url in (*private, "https://example.org/x"):
        assert order(lenient, webhook_url=url).status == 201
    numbers = ("http://134744072/x", "http://0x08080808/x", "http://010.010.010.010/x")
    for url in (*numbers, "http://example.org/x", "http://127.0.0.1.example.org/x", "http://8.8.8.8/x"):
        assert create(lenient, spec(), webhook_url=url).status == 400
    lenient.close()
    for url in private:
        assert create(core, spec(), webhook_url=url).status == 400


def test_a_number_beyond_all_bounds_is_not_stored(core):
    route = next(route for route in ROUTES if (route.method, route.path) == ("POST", "/experiments"))
    text = json.dumps({"experiment_spec": spec(parameters={"x": "@"}), "name": "x"}).replace('"@"', "-1e400")
    headers = {"authorization": f"Bearer {core.seeded.member_token}", "content-type": "application/json"}
    with pytest.raises(Refusal, match="too large"):
        core.perform(route, path={}, query={}, headers=headers, body=text.encode())


_PIECES = [
    "[" * 300,
    "NaN",
    "1e999",
    '"\\ud800"',
    '{"a": 1, "a": 2}',
    "9" * 5000,
    "[",
    "]",
    "1",
    "null",
    '"',
    "{}",
    ",",
]


@given(
    st.binary(max_size=60)
    | st.lists(st.sampled_from(_PIECES), max_size=5).map(lambda some: "".join(some).encode())
)
@example(b'{"a": 1, "a": 2}')
@example(b"NaN")
def test_any_body_is_json_or_refused(core, body):
    who = core.lab.tokens.authenticate(f"Bearer {core.seeded.member_token}")
    try:
        value = Call(core.lab, who, headers={"content-type": "application/json"}, body=body).json()
    except Refusal as refused:
        assert refused.status in (400, 415)  # noqa: PT017 - both ends are fine
    else:
        assert json.loads(json.dumps(value, allow_nan=False)) == json.loads(body)
        assert body not in (b"NaN", b'{"a": 1, "a": 2}')


def estimate(core, specification):
    return core.request(
        "POST", "/experiments/cost-estimate", json_body={"experiment_spec": specification}
    ).body


def test_estimates_add_up(core):
    body = estimate(core, spec(n_replicates=2))
    assert body["incomplete"] is None
    breakdown = body["breakdown"]
    assay, materials = breakdown["assay"], breakdown["materials"]
    assert assay["subtotal_cents"] == assay["base_cents"] + assay["replicate_addon_cents"]
    assert materials["subtotal_cents"] == 3 * materials["price_per_sequence_cents"]
    assert materials["target"] == {"name": PRICED["name"], "target_catalog_id": PRICED["id"]}
    assert (materials["target_id"], materials["target_name"]) == (PRICED["id"], PRICED["name"])
    assert breakdown["total_cents"] == assay["subtotal_cents"] + materials["subtotal_cents"]


def test_a_whole_number_may_be_written_with_a_fraction_of_zero(core):
    """JSON Schema: 3.0 is an integer."""
    whole = estimate(core, spec(n_replicates=3.0))
    assert whole == estimate(core, spec(n_replicates=3))
    assert isinstance(whole["breakdown"]["total_cents"], int)
    experiment_id = order(core, spec(n_replicates=4.0)).body["experiment_id"]
    path = f"/experiments/{experiment_id}"
    for expected in (4, 2):
        shown = get(core, path)["experiment_spec"]["n_replicates"]
        assert (shown, type(shown)) == (expected, int)
        core.request("PATCH", path, json_body={"n_replicates": 2.0})
    assert core.request("PATCH", path, json_body={"n_replicates": 2}).body["updated"] is False


def test_lots_are_opened_whole(core):
    lots = {lot["num_sequences"]: lot["price_usdcent"] for lot in BY_LOT["pricing"]["lot_prices"]}
    smallest, largest = min(lots), max(lots)

    def materials(count):
        sequences = {f"s{n}": "MKV" + "A" * n for n in range(count)}
        return estimate(core, spec(target_id=BY_LOT["id"], sequences=sequences))["breakdown"]["materials"]

    assert materials(1)["subtotal_cents"] == materials(smallest)["subtotal_cents"] == lots[smallest]
    assert materials(largest + 1)["subtotal_cents"] == lots[largest] + lots[smallest]


def test_an_unpriced_target_gives_an_incomplete_estimate(core):
    body = estimate(core, spec(target_id=UNPRICED["id"]))
    assert body["breakdown"] is None
    missing = body["incomplete"]["materials_unavailable"]
    assert missing["target"]["name"] == missing["target_name"] == UNPRICED["name"]
    assert missing["target_id"] == UNPRICED["id"]
    assert "total_cents" not in body["incomplete"]


def test_messages_speak_the_words_of_the_wire(core):
    body = {"experiment_spec": spec(), "name": "x", "payment": {"method": "cash"}}
    answer = refusal(core, "POST", "/experiments", json_body=body)
    assert answer.message == "payment.method: Input should be 'x402-exact' or 'mpp-spt'"
    body = {"attenuation": {"allowed_actions": ["fly"]}, "name": "x", "token": "x"}
    answer = refusal(core, "POST", "/tokens/attenuate", json_body=body)
    assert answer.message.startswith("attenuation.allowed_actions.0: 'fly' is not known")
