"""The state machine on the virtual clock (contract 3, 4.2 and 8)."""

import sqlite3
from datetime import datetime, timedelta

import pytest

from assay_lab.experiments import results, state_machine
from assay_lab.experiments.delays import draw_delays
from assay_lab.kernel import times
from lab_support.core import EPOCH, UNPRICED, advance, get, lab_core, order, refusal, spec, to_quote

WORK = ["In queue", "In production", "Assay progress", "Data analysis", "In review", "Done"]


def status(core, experiment_id):
    return get(core, f"/experiments/{experiment_id}")["status"]


def story(core, experiment_id):
    return [update["name"] for update in get(core, f"/experiments/{experiment_id}/updates")["items"]]


def confirm(core, experiment_id):
    return core.request("POST", f"/experiments/{experiment_id}/quote/confirm", json_body={}).body


def test_the_quoted_route_from_draft_to_done(core):
    experiment_id = order(core).body["experiment_id"]
    assert status(core, experiment_id) == "draft"
    assert story(core, experiment_id) == []
    submitted = core.request("POST", f"/experiments/{experiment_id}/submit").body
    assert submitted["previous_status"] == "draft"
    assert submitted["status"] == status(core, experiment_id) == "waiting_for_confirmation"
    # The quote comes later (contract 4.2).
    assert refusal(core, "GET", f"/experiments/{experiment_id}/quote").status == 404
    advance(core, hours=1)
    assert status(core, experiment_id) == "quote_sent"
    assert get(core, f"/experiments/{experiment_id}/quote")["status"] == "open"
    assert confirm(core, experiment_id)["status"] == "accepted"
    assert status(core, experiment_id) == "waiting_for_materials"
    advance(core, days=15)
    assert status(core, experiment_id) == "done"
    begin = ["Waiting for confirmation", "Quote sent", "Waiting for materials"]
    assert story(core, experiment_id) == begin + WORK


def test_results_appear_in_review_and_are_complete_when_done(core):
    experiment_id = order(core, auto_accept_quote=True).body["experiment_id"]
    seen = {}
    while status(core, experiment_id) != "done":
        core.clock_driver.to_next(core.seeded.organization_id)
        detail = get(core, f"/experiments/{experiment_id}")
        results = get(core, f"/experiments/{experiment_id}/results")["items"]
        seen.setdefault(detail["status"], (detail["results_status"], results))
    assert seen["data_analysis"] == ("none", [])
    assert seen["in_review"][0] == "partial"
    assert seen["done"][0] == "all"
    (early,), (final,) = seen["in_review"][1], seen["done"][1]
    assert early["id"] == final["id"]
    assert early["summary"] != final["summary"]
    assert len(final["summary"]) == 3
    assert get(core, f"/results/{final['id']}") == final
    row = get(core, "/results")["items"][0]
    assert set(row) == {"id", "experiment_id", "result_type", "title", "created_at", "size_bytes"}


def test_the_lab_window_is_5_to_15_days_and_decided_by_the_seed():
    windows = [draw_delays("lab", f"LAB-001-{n:03d}").window for n in range(500)]
    assert timedelta(days=5) <= min(windows) < timedelta(days=5.5)
    assert timedelta(days=14.5) < max(windows) <= timedelta(days=15)
    assert (
        draw_delays("lab", "LAB-001-001")
        == draw_delays("lab", "LAB-001-001")
        != draw_delays("other", "LAB-001-001")
    )


def test_updates_carry_the_moment_they_happened_at(core):
    experiment_id = order(core, auto_accept_quote=True).body["experiment_id"]
    advance(core, days=40)
    stamps = [update["timestamp"] for update in get(core, f"/experiments/{experiment_id}/updates")["items"]]
    assert stamps == sorted(stamps)
    accepted, done = times.read(stamps[1]), times.read(stamps[-1])
    assert timedelta(days=5) <= done - accepted <= timedelta(days=15)
    feed = get(core, "/updates", filter=f"and(eq(experiment_id,{experiment_id}),eq(type,progress))")
    assert [update["name"] for update in feed["items"]] == ["Assay progress"]
    assert get(core, "/updates")["items"][0]["name"] == "Done"


def test_an_expired_quote_cannot_be_accepted(core):
    experiment_id = to_quote(core)
    expires = datetime.fromisoformat(get(core, f"/experiments/{experiment_id}/quote")["expires_at"])
    org_id = core.seeded.organization_id
    core.clock_driver.advance(org_id, expires - timedelta(seconds=1))
    assert status(core, experiment_id) == "quote_sent"
    core.clock_driver.advance(org_id, expires)
    assert get(core, f"/experiments/{experiment_id}/quote")["status"] == "stale"
    assert get(core, "/quotes")["items"][0]["status"] == "expired"
    path = f"/experiments/{experiment_id}/quote/confirm"
    assert refusal(core, "POST", path, json_body={}).status == 409
    assert status(core, experiment_id) == "draft"


def test_waiting_for_the_customer_is_idle(core):
    experiment_id = to_quote(core)
    before = core.lab.clock.now(core.seeded.organization_id)
    assert core.clock_driver.until_idle(core.seeded.organization_id) == 0
    assert core.lab.clock.now(core.seeded.organization_id) == before
    assert status(core, experiment_id) == "quote_sent"


def test_an_unpriced_target_is_quoted_by_hand(core):
    experiment_id = to_quote(core, spec(target_id=UNPRICED["id"]))
    assert get(core, f"/experiments/{experiment_id}")["costs"]["type"] == "quoted"
    assert get(core, f"/experiments/{experiment_id}/quote")["amount_total"] > 0


def test_a_step_that_fails_leaves_clock_and_queue_as_they_were(core, monkeypatch):
    experiment_id = order(core, auto_accept_quote=True).body["experiment_id"]

    def broken(**fields):
        raise sqlite3.OperationalError("disk full")

    advance(core, days=1)
    monkeypatch.setattr(results, "measure_records", broken)
    with pytest.raises(sqlite3.OperationalError):
        advance(core, days=20)
    assert status(core, experiment_id) == "data_analysis"
    stopped_at = core.lab.clock.now(core.seeded.organization_id)
    assert stopped_at < EPOCH + timedelta(days=15)
    monkeypatch.undo()
    advance(core, days=20)
    assert status(core, experiment_id) == "done"
    assert story(core, experiment_id).count("In review") == 1


def test_a_lab_that_ends_goes_on_where_it_was(tmp_path):
    database = tmp_path / "lab.sqlite3"
    first = lab_core(database=database)
    experiment_id = order(first, auto_accept_quote=True).body["experiment_id"]
    advance(first, days=4)
    before = status(first, experiment_id)
    now = first.lab.clock.now(first.seeded.organization_id)
    old_token = first.seeded.member_token
    first.close()
    second = lab_core(database=database)
    assert second.lab.clock.now(second.seeded.organization_id) == now
    assert second.request("GET", f"/experiments/{experiment_id}", token=old_token).body["status"] == before
    advance(second, days=12)
    assert status(second, experiment_id) == "done"
    second.close()


def test_organisations_have_clocks_of_their_own(core):
    from assay_lab.service import seeding

    other = seeding.add_organization(core.lab, "other", "Other")
    mine = order(core, auto_accept_quote=True).body["experiment_id"]
    core.clock_driver.advance(other.organization_id, EPOCH + timedelta(days=30))
    assert status(core, mine) == "waiting_for_confirmation"
    # And nobody sees the other's experiments.
    assert refusal(core, "GET", f"/experiments/{mine}", token=other.member_token).status == 404
    answer = refusal(core, "GET", f"/experiments/{mine}/invoice", token=other.member_token)
    assert answer.status == 403  # contract 7: no access to this experiment (invoice)
    assert core.request("GET", "/updates", token=other.member_token).body["total"] == 0


def test_the_clock_never_goes_back(core):
    org_id = core.seeded.organization_id
    refused = pytest.raises(Exception, match="moves forward only")
    with refused:
        core.clock_driver.advance(org_id, EPOCH - timedelta(seconds=1))


def test_force_drops_what_was_queued(core):
    experiment_id = order(core, auto_accept_quote=True).body["experiment_id"]
    with core.lab.store.transaction() as db:
        row = db.one("SELECT * FROM experiments WHERE id = ?", experiment_id)
        state_machine.force_status(
            core.lab, db, row, state_machine.ExperimentStatus.CANCELED, core.lab.clock.now(row["org_id"])
        )
    advance(core, days=30)
    assert status(core, experiment_id) == "canceled"
