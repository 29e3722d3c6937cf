"""Snapshots: what they hold, that requests may run meanwhile, and the handles that tests use for them."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import httpx
import pytest

from prefect_assay.lab.kernel import clock
from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.service.core import KEPT_MAX
from support.lab.core import advance, get, lab_core, order, spec
from support.lab.sim_client import served

pytest_plugins = ["prefect_assay.lab.fixture"]


@pytest.fixture(scope="module")
def lab():
    with served() as running:
        yield running


def test_everything_is_as_it_was(lab):
    experiment_id = lab.order(auto_accept_quote=True).json()["experiment_id"]
    chance = lab.fault("status", "/never", probability=0.5, seed=3)
    lab.core.faults.take("GET", "/never")
    lab.sim("POST", "/webhook-faults", json={"action": "drop"})
    lab.sim("POST", "/plan", json={"window_days": 3})
    kept = lab.sim("POST", "/snapshots", json={"name": "ordered"}).json()
    clock, used, token = lab.sim("GET", "/clock").json(), lab.used(chance), lab.core.seeded.member_token
    strikes = [lab.core.faults.take("GET", "/never") is not None for _ in range(20)]

    lab.sim("POST", "/clock/advance", json={"days": 20})
    lab.sim("POST", "/rate-limit", json={"requests": 1, "per_seconds": 3600})
    lab.order()
    lab.sim("POST", "/seed", json={"slug": "later"})
    lab.sim("POST", "/reset")
    assert lab.api("GET", "/whoami", token=token).status_code == 401

    restored = lab.sim("POST", f"/snapshots/{kept['id']}/restore").json()
    assert restored["member_token"] == token
    assert (lab.sim("GET", "/clock").json(), lab.used(chance)) == (clock, used)
    assert [lab.core.faults.take("GET", "/never") is not None for _ in range(20)] == strikes
    assert [item["action"] for item in lab.sim("GET", "/webhook-faults").json()["items"]] == ["drop"]
    assert lab.sim("GET", "/rate-limit").json()["limit"] is None
    assert lab.api("GET", f"/experiments/{experiment_id}").json()["status"] == "waiting_for_confirmation"
    lab.sim("POST", "/clock/advance", json={"days": 3, "hours": 1})
    assert lab.api("GET", f"/experiments/{experiment_id}").json()["status"] == "done"


def test_the_journal_forgets_what_came_after_and_never_reuses_a_number(lab):
    lab.api("GET", "/whoami")
    kept = lab.sim("POST", "/snapshots").json()
    lab.api("GET", "/targets")
    lab.sim("POST", f"/snapshots/{kept['id']}/restore")
    (entry, *_) = reversed(lab.sim("GET", "/journal").json()["items"])
    assert (entry["path"], entry["number"]) == ("/api/v1/whoami", kept["journal_position"])
    lab.api("GET", "/targets")
    after = lab.sim("GET", "/journal", params={"after": kept["journal_position"]}).json()["items"]
    assert [entry["number"] for entry in after] == [kept["journal_position"] + 2]


def test_snapshots_are_listed_and_deleted(lab):
    kept = lab.sim("POST", "/snapshots", json={"name": "one"}).json()
    assert kept in lab.sim("GET", "/snapshots").json()["items"]
    assert lab.sim("DELETE", f"/snapshots/{kept['id']}").status_code == 200
    for call in (("DELETE", f"/snapshots/{kept['id']}"), ("POST", f"/snapshots/{kept['id']}/restore")):
        assert lab.sim(*call).status_code == 404


def test_there_is_an_end_to_snapshots():
    core = lab_core()
    try:
        for _ in range(KEPT_MAX):
            core.snapshot()
        with pytest.raises(Refusal, match="delete some"):
            core.snapshot()
    finally:
        core.close()


def test_restores_while_requests_run():
    """Every request sees one world or the other: none fails, and what is answered last is there."""
    core = lab_core()
    kept = core.snapshot()
    end, problems = threading.Event(), []

    def customer():
        while not end.is_set():
            try:
                made = order(core, spec(sequences={"a": "MKV"}), auto_accept_quote=True)
                assert made.status == 201
                assert get(core, "/experiments")["total"] <= 10_000
            except Exception as problem:  # noqa: BLE001 - whatever it is, the test shows it
                problems.append(problem)

    try:
        with ThreadPoolExecutor(4) as pool:
            customers = [pool.submit(customer) for _ in range(3)]
            for turn in range(30):
                advance(core, hours=6)
                core.snapshots.delete(core.snapshot().id)
                if turn % 10 == 9:
                    core.reset()
                core.restore(kept.id)
            end.set()
            for one in customers:
                one.result()
        problems = [problem for problem in problems if getattr(problem, "status", None) != 401]
        assert problems == []
        core.restore(kept.id)
        assert get(core, "/experiments")["total"] == 0
        assert order(core).body["experiment_code"].endswith("-001")
    finally:
        core.close()


def test_the_clock_advances_while_requests_run():
    core = lab_core()
    try:
        with ThreadPoolExecutor(4) as pool:
            orders = [
                pool.submit(order, core, spec(sequences={"a": "MKV"}), auto_accept_quote=True)
                for _ in range(60)
            ]
            for _ in range(20):
                advance(core, days=1)
            assert {one.result().status for one in orders} == {201}
        advance(core, days=16)
        assert get(core, "/experiments", status="done")["total"] == 60
    finally:
        core.close()


def test_a_running_clock_continues_from_the_snapshot(monkeypatch):
    real = [0.0]
    monkeypatch.setattr(clock.time, "monotonic", lambda: real[0])
    core = lab_core(clock_mode="scaled", seconds_per_day=1)
    org_id = core.seeded.organization_id
    try:
        begin = core.lab.clock.now(org_id)
        real[0] = 10
        kept = core.snapshot()
        real[0] = 25
        assert core.lab.clock.now(org_id) == begin + timedelta(days=25)
        core.restore(kept.id)
        real[0] = 26
        assert core.lab.clock.now(org_id) - begin == timedelta(days=11)
    finally:
        core.close()


def test_background_threads_outlive_a_restore():
    core = lab_core(clock_mode="auto")
    core.start()
    try:
        kept = core.snapshot()
        order(core, auto_accept_quote=True)
        core.restore(kept.id)
        assert get(core, "/experiments")["total"] == 0
        order(core, auto_accept_quote=True)
        end = time.monotonic() + 10
        while get(core, "/experiments", status="done")["total"] == 0:
            assert time.monotonic() < end, "the clock does not run any more"
            threading.Event().wait(0.01)
    finally:
        core.close()


def test_the_handle_rolls_back(lab_process):
    with lab_process.http() as http:
        before = lab_process.clock()["now"]
        with lab_process.rolled_back():
            http.post("/experiments", json={"experiment_spec": spec(), "name": "inside"})
            lab_process.advance(days=3)
            lab_process.fault("status", "/whoami", count=9)
        assert http.get("/experiments").json()["total"] == 0
        assert (lab_process.clock()["now"], lab_process.faults(), lab_process.snapshots()) == (before, [], [])
        token, kept = lab_process.token, lab_process.snapshot("start")
        lab_process.reset()
        assert lab_process.token != token
        lab_process.restore(kept)
        assert lab_process.token == token
        assert http.get("/whoami").status_code == 200
        lab_process.delete_snapshot(kept)
        with pytest.raises(httpx.HTTPStatusError, match="no snapshot"):
            lab_process.restore(kept)
