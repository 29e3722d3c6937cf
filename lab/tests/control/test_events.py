"""Lab events and fixed plans: each does what it says, and is refused where it makes no sense."""

import pytest

from assay_lab.control import events
from lab_support.core import spec


def happen(lab, event, experiment_id, **details):
    answer = lab.sim("POST", "/events", json={"event": event, "experiment_id": experiment_id, **details})
    return answer.json() if answer.status_code == 200 else (answer.status_code, answer.json()["error"])


def advance(lab, **span):
    answer = lab.sim("POST", "/clock/advance", json=span)
    assert answer.status_code == 200, answer.text
    return answer.json()


def status(lab, experiment_id):
    return lab.api("GET", f"/experiments/{experiment_id}").json()["status"]


def submitted(lab, **fields):
    return lab.order(skip_draft=True, **fields).json()["experiment_id"]


def ordered(lab, **fields):
    return lab.order(auto_accept_quote=True, **fields).json()["experiment_id"]


def quoted(lab):
    experiment_id = submitted(lab)
    advance(lab, hours=1)
    return experiment_id


def quote_words(lab, experiment_id):
    quote = lab.api("GET", f"/experiments/{experiment_id}/quote").json()
    (row,) = lab.api("GET", "/quotes").json()["items"]
    return quote["status"], row["status"]


def measured_names(lab, experiment_id):
    """Of an affinity experiment: the sequences that have a value."""
    (result,) = lab.api("GET", f"/experiments/{experiment_id}/results").json()["items"]
    return [row["sequence"]["name"] for row in result["summary"] if row["binding"] != "in_progress"]


def invoice_of(lab, experiment_id):
    answer = lab.api("GET", f"/experiments/{experiment_id}/invoice")
    return answer.status_code, answer.json().get("status")


def news(lab, experiment_id):
    rows = lab.api("GET", f"/experiments/{experiment_id}/updates").json()["items"]
    return [row["name"] for row in rows]


@pytest.mark.parametrize(
    ("event", "words"), [("expire_quote", ("stale", "expired")), ("reject_quote", ("canceled", "rejected"))]
)
def test_a_quote_ends_at_the_labs_side(lab, event, words):
    experiment_id = quoted(lab)
    assert happen(lab, event, experiment_id)["status"] == "draft"
    assert quote_words(lab, experiment_id) == words
    confirm = lab.api("POST", f"/experiments/{experiment_id}/quote/confirm", json={})
    assert confirm.status_code == 409
    assert happen(lab, event, experiment_id)[0] == 409


def test_a_held_quote_waits_for_its_release(lab):
    experiment_id = submitted(lab)
    happen(lab, "hold_quote", experiment_id)
    advance(lab, days=300)
    assert advance(lab, until="idle")["steps"] == 0
    assert status(lab, experiment_id) == "waiting_for_confirmation"
    assert happen(lab, "release_quote", experiment_id)["status"] == "quote_sent"
    assert lab.api("POST", f"/experiments/{experiment_id}/quote/confirm", json={}).status_code == 200
    assert (
        happen(lab, "hold_quote", experiment_id)[0] == happen(lab, "release_quote", experiment_id)[0] == 409
    )


@pytest.mark.parametrize("early", [True, False])
def test_a_stalled_review_ends_with_its_release(lab, early):
    experiment_id = ordered(lab)
    if not early:
        advance(lab, hours=1)
    happen(lab, "stall_review", experiment_id)
    advance(lab, days=300)
    assert status(lab, experiment_id) == "in_review"
    assert happen(lab, "release_review", experiment_id) == {"status": "done", "results_status": "all"}
    assert happen(lab, "stall_review", experiment_id)[0] == 409


def test_a_stalled_review_outlives_a_repeated_production(lab):
    experiment_id = ordered(lab)
    advance(lab, hours=1)
    happen(lab, "stall_review", experiment_id)
    while status(lab, experiment_id) != "in_production":
        advance(lab, until="next")
    happen(lab, "fail_production", experiment_id)
    advance(lab, days=300)
    assert status(lab, experiment_id) == "in_review"
    assert happen(lab, "release_review", experiment_id)["status"] == "done"


@pytest.mark.parametrize("fixed", [{"window_days": 7}, {}])
def test_a_stalled_review_outlives_other_delays(lab, fixed):
    experiment_id = ordered(lab)
    happen(lab, "stall_review", experiment_id)
    answer = lab.sim("POST", "/plan", json={"experiment_id": experiment_id, **fixed})
    assert answer.json() == {**fixed, "hold_review": 1}
    advance(lab, days=300)
    assert status(lab, experiment_id) == "in_review"


def test_a_review_released_before_its_time_ends_on_its_day(lab):
    lab.sim("POST", "/plan", json={"window_days": 10})
    experiment_id = ordered(lab)
    advance(lab, hours=1)
    happen(lab, "stall_review", experiment_id)
    advance(lab, days=5)
    assert happen(lab, "release_review", experiment_id)["status"] == "in_production"
    assert happen(lab, "release_review", experiment_id)[0] == 409
    advance(lab, days=4.9)
    assert status(lab, experiment_id) == "in_review"
    advance(lab, days=0.2)
    assert status(lab, experiment_id) == "done"


def test_preliminary_results_of_some_sequences(lab):
    experiment_id = ordered(lab)
    assert happen(lab, "partial_results", experiment_id)[0] == 409
    happen(lab, "force_status", experiment_id, status="in_production")
    assert "'zz'" in happen(lab, "partial_results", experiment_id, sequences=["a", "zz"])[1]
    outcome = happen(lab, "partial_results", experiment_id, sequences=["a", "c"])
    assert outcome == {"status": "in_production", "results_status": "partial"}
    (first,) = lab.api("GET", f"/experiments/{experiment_id}/results").json()["items"]
    assert [entry["sequence"]["name"] for entry in first["summary"]] == ["a", "b", "c"]
    assert measured_names(lab, experiment_id) == ["a", "c"]
    happen(lab, "partial_results", experiment_id, sequences=["b"])  # a value that is out stays
    assert measured_names(lab, experiment_id) == ["a", "b", "c"]
    happen(lab, "force_status", experiment_id, status="done")
    (last,) = lab.api("GET", f"/experiments/{experiment_id}/results").json()["items"]
    assert (last["id"], len(last["summary"])) == (first["id"], 3)


@pytest.mark.parametrize(
    ("sequences", "released"),
    [(["b"], ["a", "b"]), (["b", "c"], ["a", "b", "c"]), (None, ["a", "b", "c"])],
)
def test_a_review_withdraws_no_value(lab, sequences, released):
    experiment_id = ordered(lab)
    happen(lab, "force_status", experiment_id, status="in_production")
    named = {} if sequences is None else {"sequences": sequences}
    happen(lab, "partial_results", experiment_id, **named)
    assert measured_names(lab, experiment_id) == (sequences or ["a", "b", "c"])
    happen(lab, "force_status", experiment_id, status="in_review")
    assert measured_names(lab, experiment_id) == released


@pytest.mark.parametrize(("count", "released"), [(1, ["s0"]), (2, ["s0"]), (5, ["s0", "s1"])])
def test_a_review_releases_half_of_the_sequences_at_least_one(lab, count, released):
    sequences = {f"s{place}": "MKTAYIAKQ" + "ACDEF"[place] for place in range(count)}
    experiment_id = submitted(lab, experiment_spec=spec(sequences=sequences))
    happen(lab, "force_status", experiment_id, status="in_review")
    assert measured_names(lab, experiment_id) == released


@pytest.mark.parametrize("kind", ["screening", "epitope_binning", "thermostability", "expression"])
def test_preliminary_results_of_one_sequence_of_any_type(lab, kind):
    letters = {f"s{place}": "MKTAYIAKQ" + "ACDE"[place] for place in range(4)}
    binding = kind in ("screening", "epitope_binning")
    changes = {
        "experiment_type": kind,
        "sequences": letters,
        "method": "bli" if kind == "screening" else None,
    }
    experiment_id = lab.api(
        "POST",
        "/experiments",
        json={"name": kind, "experiment_spec": spec(**changes, **({} if binding else {"target_id": None}))},
    ).json()["experiment_id"]
    happen(lab, "force_status", experiment_id, status="in_production")
    happen(lab, "partial_results", experiment_id, sequences=["s2"])
    (result,) = lab.api("GET", f"/experiments/{experiment_id}/results").json()["items"]
    measured = [entry for entry in result["summary"] if "data_source" in entry]
    assert [row.get("sequence_name") or row["sequence"]["name"] for row in measured] == ["s2"]
    assert len(result["summary"]) == 4


def test_progress_and_errors_are_updates(lab):
    experiment_id = ordered(lab)
    happen(lab, "progress", experiment_id, name="Half way", description="x")
    happen(lab, "error", experiment_id, description="The chip broke.")
    assert news(lab, experiment_id)[-2:] == ["Half way", "Something went wrong"]
    query = {"filter": f"and(eq(type,error),eq(experiment_id,{experiment_id}))"}
    assert lab.api("GET", "/updates", params=query).json()["total"] == 1


def test_a_failed_production_is_repeated(lab):
    lab.sim("POST", "/plan", json={"window_days": 10})
    experiment_id = ordered(lab)
    advance(lab, days=1)
    assert happen(lab, "fail_production", experiment_id)[0] == 409
    advance(lab, days=5)
    assert happen(lab, "fail_production", experiment_id)["status"] == "in_queue"
    advance(lab, days=6.9)  # 7 of the 10 days come after the queue
    assert status(lab, experiment_id) == "in_review"
    advance(lab, days=0.2)
    assert status(lab, experiment_id) == "done"
    assert news(lab, experiment_id).count("In production") == 2


def test_only_what_is_not_confirmed_can_be_canceled(lab):
    # contract 3: possible from Draft or WaitingForConfirmation
    draft, waiting, running = lab.order().json()["experiment_id"], submitted(lab), ordered(lab)
    assert happen(lab, "cancel", draft)["status"] == happen(lab, "cancel", waiting)["status"] == "canceled"
    accepted = ordered(lab)
    assert happen(lab, "cancel", accepted)["status"] == "canceled"
    # contract 4.2: an invoice exists once its quote is accepted; void is one of its statuses
    assert invoice_of(lab, accepted) == (200, "void")
    advance(lab, days=1)
    assert happen(lab, "cancel", running)[0] == 409
    advance(lab, days=30)
    assert {status(lab, one) for one in (draft, waiting, accepted)} == {"canceled"}


@pytest.mark.parametrize(
    ("event", "word"), [("void_invoice", "void"), ("uncollectible_invoice", "uncollectible")]
)
def test_invoices_can_end_unpaid(lab, event, word):
    experiment_id = ordered(lab)
    happen(lab, event, experiment_id)
    (invoice,) = lab.api("GET", "/invoices").json()["items"]
    assert invoice["status"] == word
    assert invoice_of(lab, experiment_id) == (200, word)
    assert happen(lab, event, experiment_id)[0] == happen(lab, "pay_invoice", experiment_id)[0] == 409


def test_staff_decide_on_a_custom_target(lab):
    body = {"name": "Mine", "product_id": "P-1", "sequence": "MKTAYIAKQR"}
    request_id = lab.api("POST", "/targets/request-custom", json=body).json()["id"]
    decision = {"event": "decide_custom_target", "request_id": request_id, "approved": True}
    pricing = {"type": "per_sequence", "price_per_sequence_cents": 1234}
    answer = lab.sim("POST", "/events", json={**decision, "pricing": pricing})
    assert answer.json()["status"] == "approved"
    target = lab.api("GET", f"/targets/{answer.json()['target_id']}").json()
    assert target["pricing"] == pricing
    assert lab.sim("POST", "/events", json=decision).status_code == 409
    assert lab.sim("POST", "/events", json={**decision, "request_id": "none"}).status_code == 404


def test_a_family_of_tokens_can_be_revoked(lab):
    body = {"token": lab.core.seeded.member_token, "name": "child", "attenuation": {"read_only": True}}
    child = lab.api("POST", "/tokens/attenuate", json=body).json()
    assert lab.api("GET", "/whoami", token=child["token"]).status_code == 200
    assert lab.sim("POST", "/events", json={"event": "revoke_token", "token_id": "x"}).status_code == 404
    answer = lab.sim("POST", "/events", json={"event": "revoke_token", "token_id": child["id"]})
    assert answer.status_code == 200, answer.text
    for token in (child["token"], lab.core.seeded.member_token):
        assert lab.api("GET", "/whoami", token=token).status_code == 401
    assert lab.api("GET", "/whoami", token=lab.core.seeded.viewer_token).status_code == 200


def test_unknown_events_and_fields_are_named(lab):
    experiment_id = lab.order().json()["experiment_id"]
    code, message = happen(lab, "explode", experiment_id)
    assert code == 400
    for event in events.EVENTS:
        assert event in message
    code, message = happen(lab, "progress", experiment_id, descripton="misspelt")
    assert (code, "descripton" in message) == (400, True)
    assert happen(lab, "progress", "no-such-id")[0] == 404


def test_a_refused_event_changes_nothing(lab):
    experiment_id = lab.order().json()["experiment_id"]
    before = lab.api("GET", f"/experiments/{experiment_id}").json(), news(lab, experiment_id)
    needless = set(events.EVENTS) - {"decide_custom_target", "revoke_token", "stall_review", "release_review"}
    for event in needless - {"progress", "error", "cancel", "force_status"}:
        assert happen(lab, event, experiment_id)[0] == 409, event
    assert (lab.api("GET", f"/experiments/{experiment_id}").json(), news(lab, experiment_id)) == before


def test_fixed_plans_need_no_luck(lab):
    fixed = {"quote_minutes": 60, "window_days": 2}
    assert lab.sim("POST", "/plan", json=fixed).json() == fixed
    experiment_id = submitted(lab)
    advance(lab, minutes=59)
    assert status(lab, experiment_id) == "waiting_for_confirmation"
    advance(lab, minutes=1)
    assert status(lab, experiment_id) == "quote_sent"
    lab.api("POST", f"/experiments/{experiment_id}/quote/confirm", json={})
    advance(lab, days=2)
    assert status(lab, experiment_id) == "done"
    assert lab.sim("POST", "/plan", json={}).json() == {}
    other = submitted(lab)
    advance(lab, minutes=30)
    assert status(lab, other) == "quote_sent"


def test_an_experiments_own_plan_comes_before_its_organisations(lab):
    lab.sim("POST", "/plan", json={"quote_minutes": 60, "window_days": 30})
    experiment_id = lab.order().json()["experiment_id"]
    lab.sim("POST", "/plan", json={"experiment_id": experiment_id, "quote_minutes": 1, "window_days": 2})
    lab.api("POST", f"/experiments/{experiment_id}/submit")
    advance(lab, minutes=1)
    assert status(lab, experiment_id) == "quote_sent"
    lab.api("POST", f"/experiments/{experiment_id}/quote/confirm", json={})
    other = ordered(lab)
    advance(lab, days=16)
    assert (status(lab, experiment_id), status(lab, other)) == ("done", "in_production")
    both = {"experiment_id": experiment_id, "organization_id": lab.core.seeded.organization_id}
    assert lab.sim("POST", "/plan", json=both).status_code == 400


def test_a_filled_lab_continues_like_any_other(lab):
    made = lab.sim("POST", "/experiments", json={"experiments": 3, "stage": "ordered", "sequences": 2})
    drafts = lab.sim("POST", "/experiments", json={"experiments": 120}).json()["experiment_ids"]
    (waiting,) = lab.sim("POST", "/experiments", json={"experiments": 1, "stage": "submitted"}).json()[
        "experiment_ids"
    ]
    page = lab.api("GET", "/experiments", params={"limit": 100, "status": "draft"}).json()
    assert (page["total"], page["items"][0]["id"]) == (120, drafts[-1])
    advance(lab, days=16)
    for experiment_id in made.json()["experiment_ids"]:
        assert status(lab, experiment_id) == "done"
        (result,) = lab.api("GET", f"/experiments/{experiment_id}/results").json()["items"]
        assert len(result["summary"]) == 2
    assert status(lab, waiting) == "quote_sent"
    assert lab.order().json()["experiment_code"].endswith("-125")
    submit = lab.api("POST", f"/experiments/{drafts[5]}/submit")
    assert submit.status_code == 200, submit.text
