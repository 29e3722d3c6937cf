"""Route faults: what strikes, what it does, and that a test can see it."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from assay_lab.kernel.faults import FaultList
from assay_lab.service.faults import ACTIONS, Fault
from lab_support.core import lab_core, spec
from lab_support.tool_client import browser

pytest_plugins = ["assay_lab.fixture"]


def total(lab, name="sim"):
    return lab.api("GET", "/experiments", params={"search": name}).json()["total"]


def test_a_status_is_answered_and_nothing_is_handled(lab):
    number = lab.fault(
        "status", "/experiments", method="POST", status=409, error="no", fields={"error_kind": "other"}
    )
    answer = lab.order()
    assert (answer.status_code, total(lab)) == (409, 0)
    assert answer.json() == {
        "error": "no",
        "error_kind": "other",
        "request_id": answer.headers["x-request-id"],
    }
    assert lab.used(number) == 1
    lab.fault("status", "/whoami", status=429, retry_after=7)
    limited = lab.api("GET", "/whoami")
    assert (limited.status_code, limited.headers["retry-after"]) == (429, "7")


def test_an_error_after_the_commit_has_done_its_work(lab):
    lab.fault("error_after", "/experiments", method="POST", status=502)
    answer = lab.order()
    assert (answer.status_code, total(lab)) == (502, 1)
    assert set(answer.json()) == {"error", "request_id"}


@pytest.mark.parametrize(("action", "made"), [("reset", 0), ("lose_answer", 1)])
def test_connections_close_before_or_after_the_commit(lab, action, made):
    number = lab.fault(action, "/experiments", method="POST")
    with pytest.raises(ConnectionResetError):
        lab.order()
    assert (total(lab), lab.used(number)) == (made, 1)
    (entry,) = lab.sim("GET", "/journal", params={"method": "POST"}).json()["items"]
    assert (entry["fault"], entry["answered"]) == (action, False)
    assert entry["status"] == (201 if made else None)


def cut(http, path):
    """Status, announced length, what arrived, and the error that ended it."""
    got = []
    with http.stream("GET", path) as answer:
        try:
            for piece in answer.iter_raw():
                got.append(piece)  # noqa: PERF402 - the error comes in between
        except httpx.RemoteProtocolError as problem:
            return answer.status_code, answer.headers["content-length"], b"".join(got), problem
    return answer.status_code, answer.headers["content-length"], b"".join(got), None


def test_a_cut_answer_announces_its_full_length(shared_lab):
    with shared_lab.http() as http:
        whole = http.get("/targets")
        for details in ({}, {"keep_bytes": 10}, {"keep_bytes": 10**9}, {"keep_bytes": 0}):
            fault = shared_lab.fault("truncate", "/targets", **details)
            status, announced, got, error = cut(http, "/targets")
            assert (status, announced) == (200, str(len(whole.content)))
            assert "without sending complete" in str(error)
            assert len(got) == min(details.get("keep_bytes", len(whole.content) // 2), len(whole.content) - 1)
            assert whole.content.startswith(got)
            assert fault.used == 1
        assert http.get("/targets").content == whole.content


def test_a_cut_answer_without_a_body_is_lost_whole(lab):
    hook = lab.api("POST", "/webhooks", json={"url": "https://example.com/hook"}).json()
    lab.fault("truncate", "/webhooks/*", method="DELETE")
    with pytest.raises(ConnectionResetError):
        lab.api("DELETE", f"/webhooks/{hook['id']}")
    assert lab.api("GET", "/webhooks").json() == []


def test_a_failure_after_the_invoice_voids_it_and_names_nothing(lab):
    # contract 4.2, create rule 5
    number = lab.fault("post_invoice_failure", "/experiments", method="POST")
    assert lab.order().status_code == 201  # makes no invoice, so the fault waits on
    assert lab.used(number) == 0
    answer = lab.order(auto_accept_quote=True)
    assert (answer.status_code, set(answer.json())) == (500, {"error", "request_id"})
    assert lab.used(number) == 1
    assert [row["status"] for row in lab.api("GET", "/invoices").json()["items"]] == ["void"]
    assert lab.order(auto_accept_quote=True).status_code == 201


@pytest.mark.parametrize("action", ["post_invoice_failure", "partial_create"])
def test_an_order_is_broken_before_a_clock_looks_at_it(monkeypatch, action):
    core, seen = lab_core(), []

    def look():
        with core.lab.store.transaction() as db:
            seen.append(db.column("SELECT status FROM invoices"))

    monkeypatch.setattr(core.lab, "changed", look)
    core.faults.append(Fault(action=action, method="POST", path="/experiments"))
    body = {"experiment_spec": spec(), "name": "x", "auto_accept_quote": True}
    token = {"Authorization": f"Bearer {core.seeded.member_token}"}
    with browser(core) as http:
        assert http.post("/api/v1/experiments", json=body, headers=token).status_code == 500
    core.close()
    assert [statuses for statuses in seen if statuses] == [["void"]]


@pytest.mark.parametrize("action", ["post_invoice_failure", "partial_create"])
def test_calls_about_an_invoice_are_no_orders(lab, action):
    experiment_id = lab.order(auto_accept_quote=True).json()["experiment_id"]
    (row,) = lab.api("GET", "/invoices").json()["items"]
    number = lab.fault(action)
    paths = (f"/invoices/{row['id']}", f"/experiments/{experiment_id}/invoice", "/invoices")
    answers = [lab.api("GET", path) for path in paths] + [lab.api("POST", f"/invoices/{row['id']}/pay")]
    assert [answer.status_code for answer in answers] == [200] * 4
    assert lab.used(number) == 0
    assert lab.api("GET", "/invoices").json()["items"] == [row]


@pytest.mark.parametrize("action", ["post_invoice_failure", "partial_create"])
def test_a_broken_confirmation_can_be_repeated(lab, action):
    # contract 4.2, create rules 5 and 6
    experiment_id = lab.order(skip_draft=True).json()["experiment_id"]
    lab.sim("POST", "/clock/advance", json={"hours": 1})
    lab.fault(action, "*/quote/confirm")
    path = f"/experiments/{experiment_id}/quote/confirm"
    broken = lab.api("POST", path, json={})
    assert broken.status_code == 500
    named = {"experiment_id", "provider_invoice_id", "provider_hosted_invoice_url"} & set(broken.json())
    assert bool(named) == (action == "partial_create")
    assert lab.api("GET", f"/experiments/{experiment_id}").json()["status"] == "quote_sent"
    assert lab.api("GET", f"/experiments/{experiment_id}/invoice").status_code == 404
    assert lab.api("POST", path, json={}).status_code == 200
    statuses = sorted(row["status"] for row in lab.api("GET", "/invoices").json()["items"])
    assert statuses == ["open", "void"]
    lab.sim("POST", "/clock/advance", json={"days": 16})
    detail = lab.api("GET", f"/experiments/{experiment_id}").json()
    assert detail["status"] == "done"


def test_a_broken_confirmation_leaves_a_quote_that_still_expires(lab):
    experiment_id = lab.order(skip_draft=True).json()["experiment_id"]
    lab.sim("POST", "/clock/advance", json={"hours": 1})
    lab.fault("post_invoice_failure", "*/quote/confirm")
    lab.api("POST", f"/experiments/{experiment_id}/quote/confirm", json={})
    lab.sim("POST", "/clock/advance", json={"days": 16})
    assert lab.api("GET", f"/experiments/{experiment_id}").json()["status"] == "quote_sent"
    lab.sim("POST", "/clock/advance", json={"days": 15})
    assert lab.api("GET", f"/experiments/{experiment_id}/quote").json()["status"] == "stale"


def test_chance_is_decided_by_its_seed_alone():
    def hits(seed):
        fault = Fault(action="status", probability=0.3, seed=seed)
        return [fault.strikes() for _ in range(200)]

    assert hits("a") == hits("a") != hits("b")
    draw = random.Random("a")
    assert hits("a") == [draw.random() < 0.3 for _ in range(200)]


def test_chance_under_parallel_requests_hits_as_often_as_in_a_row():
    faults = FaultList[Fault]()
    unlimited = faults.append(Fault(action="status", probability=0.25, seed=7))
    limited = faults.append(Fault(action="delay", count=50, after=20))
    request = {"method": "GET", "path": "/x", "organization_id": None}
    with ThreadPoolExecutor(8) as pool:
        struck = Counter(
            fault.action for fault in pool.map(lambda _: faults.take(**request), range(2000)) if fault
        )
    draw = random.Random(7)
    expected = sum(draw.random() < 0.25 for _ in range(2000))
    views = {view["id"]: view for view in faults.view()}
    assert (views[unlimited]["used"], views[unlimited]["matched"]) == (expected, 2000)
    assert (views[limited]["used"], struck) == (50, {"status": expected, "delay": 50})


def test_the_first_that_strikes_decides_and_the_rest_wait(lab):
    first = lab.fault("status", "/who*", status=503, after=1)
    second = lab.fault("status", "/api/v1/whoami", status=502, count=2)
    assert [lab.api("GET", "/whoami").status_code for _ in range(5)] == [502, 503, 502, 200, 200]
    views = {item["id"]: item for item in lab.sim("GET", "/faults").json()["items"]}
    assert [views[first][name] for name in ("matched", "used")] == [2, 1]
    assert [views[second][name] for name in ("matched", "used")] == [2, 2]


def test_faults_can_be_dropped_one_by_one_and_all_at_once(lab):
    numbers = [lab.fault("status", "/whoami") for _ in range(3)]
    assert lab.sim("DELETE", f"/faults/{numbers[0]}").status_code == 200
    assert lab.sim("DELETE", f"/faults/{numbers[0]}").status_code == 404
    assert [item["id"] for item in lab.sim("GET", "/faults").json()["items"]] == numbers[1:]
    lab.sim("DELETE", "/faults")
    assert lab.api("GET", "/whoami").status_code == 200


def test_a_fault_of_one_organisation_leaves_the_others_alone(lab):
    other = lab.sim("POST", "/seed", json={"slug": "other"}).json()
    mine = lab.fault("status", organization_id=other["organization_id"], count=5)
    assert lab.api("GET", "/whoami").status_code == 200
    assert lab.api("GET", "/whoami", token="nonsense").status_code == 401
    assert lab.api("GET", "/whoami", token=other["viewer_token"]).status_code == 503
    assert lab.used(mine) == 1
    lab.sim("DELETE", "/faults", params={"organization_id": other["organization_id"]})
    assert lab.api("GET", "/whoami", token=other["viewer_token"]).status_code == 200


def test_every_action_leaves_the_connection_usable(shared_lab):
    with shared_lab.http() as http:
        for action in ACTIONS:
            with shared_lab.fault(action, "/experiments", "POST", seconds=0.01) as fault:
                try:
                    http.post(
                        "/experiments",
                        json={"experiment_spec": spec(), "name": action, "auto_accept_quote": True},
                    )
                except httpx.TransportError:
                    assert action in {"reset", "lose_answer", "truncate"}
                assert fault.used == 1, action
            assert http.get("/whoami").status_code == 200, action
    assert shared_lab.faults() == []
