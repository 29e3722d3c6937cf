"""The lab as its own process, over real HTTP."""

import json
import os
import re
import subprocess
import sys
import time
import zipfile
from io import BytesIO

import httpx
import pytest

from prefect_assay.errors import ConfigurationError
from prefect_assay.lab import testing
from prefect_assay.lab.testing import LocalLab
from support.lab.core import spec
from support.services.hook_server import hook_server

pytest_plugins = ["prefect_assay.lab.fixture"]


@pytest.fixture(scope="module")
def lab():
    with LocalLab(deployment_secret="hush-" * 8) as running:
        yield running


@pytest.fixture(scope="module")
def http(lab):
    with lab.http() as client:
        yield client


def order(http, **fields):
    return http.post("/experiments", json={"experiment_spec": spec(), "name": "over http", **fields})


def test_the_whole_way_to_a_data_package(lab, http):
    created = order(http, auto_accept_quote=True)
    assert created.status_code == 201
    assert created.headers["x-request-id"].startswith("req_")
    experiment_id = created.json()["experiment_id"]
    assert lab.advance(days=16)["steps"] >= 7
    (result,) = http.get(f"/experiments/{experiment_id}/results").json()["items"]
    package = httpx.get(result["data_package_url"], trust_env=False)
    assert package.headers["content-type"] == "application/zip"
    assert any(name.endswith("_summary.csv") for name in zipfile.ZipFile(BytesIO(package.content)).namelist())
    assert httpx.get(result["data_package_url"], trust_env=False).content == package.content


def test_openapi_needs_no_token_and_lists_no_control_surface(lab):
    document = httpx.get(f"{lab.base_url}/api/v1/openapi.json", trust_env=False).json()
    assert document["info"]["version"] == "0.0.2"
    assert "/api/v1/experiments/{experiment_id}/quote/confirm" in document["paths"]
    assert not [path for path in document["paths"] if "_sim" in path or "portal" in path]
    create = document["paths"]["/api/v1/experiments"]["post"]
    assert create["requestBody"]["content"]["application/json"]["schema"]["$ref"].endswith(
        "/CreateExperiment"
    )
    text = json.dumps(document)
    references = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert references <= set(document["components"]["schemas"])
    assert "HTTPValidationError" not in text


@pytest.mark.parametrize(
    "path", ["/experiments", "/whoami", "/targets", "/results", "/updates", "/quotes", "/invoices"]
)
def test_everything_else_needs_a_token(lab, path):
    answer = httpx.get(f"{lab.base_url}/api/v1{path}", trust_env=False)
    assert answer.status_code == 401
    body = answer.json()
    assert set(body) == {"error", "request_id"}
    assert body["request_id"] == answer.headers["x-request-id"]


def test_errors_have_the_contracts_body(http):
    for answer, status in (
        (http.get("/nowhere"), 404),
        (http.delete("/experiments"), 405),
        (http.post("/experiments", content=b"x", headers={"content-type": "text/plain"}), 415),
        (http.post("/experiments", json={}), 400),
    ):
        assert answer.status_code == status
        assert set(answer.json()) == {"error", "request_id"}
        assert re.fullmatch(r"req_\w+", answer.json()["request_id"])
    conflict = order(http, payment={"method": "x402-exact"})
    assert conflict.status_code == 201
    headers = {"X-Service-Payment-Method": "mpp-spt"}
    body = {"experiment_spec": spec(), "name": "x", "payment": {"method": "x402-exact"}}
    refused = http.post("/experiments", json=body, headers=headers).json()
    assert refused["code"] == "payment_method_selector_conflict"


def test_a_402_carries_error_and_request_id_too(lab, http):
    pointer = order(http, auto_accept_quote=True, payment={"method": "x402-exact"}).json()["payment"]
    answer = httpx.post(
        lab.base_url + pointer["pay_url"], headers={"Authorization": f"Bearer {lab.token}"}, trust_env=False
    )
    assert answer.status_code == 402
    assert {"error", "request_id", "accepts"} <= set(answer.json())
    assert "PAYMENT-REQUIRED" in answer.headers


def test_the_answer_can_get_lost_after_the_commit(lab, http):
    lab.fault("lose_answer", "/experiments", "POST")
    with pytest.raises(httpx.TransportError):
        order(http, name="lost answer")
    assert http.get("/experiments", params={"search": "lost answer"}).json()["total"] == 1
    entry = next(entry for entry in reversed(lab.journal()) if entry["method"] == "POST")
    assert (entry["fault"], entry["answered"], entry["status"]) == ("lose_answer", False, 201)


def test_a_connection_can_break_before_anything_happens(lab, http):
    lab.fault("reset", "/api/v1/experiments", "POST", count=2)
    for _ in range(2):
        with pytest.raises(httpx.TransportError):
            order(http, name="never")
    assert http.get("/experiments", params={"search": "never"}).json()["total"] == 0
    assert order(http, name="after").status_code == 201


def test_statuses_delays_and_late_answers(lab, http):
    lab.fault("status", "/whoami", status=429, retry_after=2, after=1)
    assert [http.get("/whoami").status_code for _ in range(3)] == [200, 429, 200]
    lab.fault("status", "/whoami", status=429, retry_after=2)
    assert http.get("/whoami").headers["retry-after"] == "2"
    for action in ("delay", "late_answer"):
        lab.fault(action, "/whoami", seconds=0.3)
        begin = time.monotonic()
        assert http.get("/whoami").status_code == 200
        assert time.monotonic() - begin >= 0.3


def test_a_partial_order_names_what_exists(lab, http):
    lab.fault("partial_create", "/experiments", "POST")
    answer = order(http, auto_accept_quote=True)
    assert answer.status_code == 500
    body = answer.json()
    assert {"error", "experiment_id", "provider_invoice_id", "provider_hosted_invoice_url"} <= set(body)
    assert http.get(f"/experiments/{body['experiment_id']}").json()["status"] == "waiting_for_confirmation"
    assert http.get(f"/invoices/{body['provider_invoice_id']}").json()["status"] == "void"


def test_the_control_surface_has_its_own_token(lab):
    for token in (lab.token, lab.viewer_token, "none", "é"):
        answer = httpx.get(
            f"{lab.base_url}/_sim/clock",
            headers={"Authorization": f"Bearer {token}".encode()},
            trust_env=False,
        )
        assert answer.status_code == 401
    with lab.http(lab.sim_token) as client:
        assert client.get("/whoami").status_code == 401


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/clock/advance", {"days": "x"}),
        ("/clock/advance", {"years": 1}),
        ("/clock/advance", {"days": -1}),
        ("/clock/advance", {"days": 1e12}),
        ("/clock/mode", {"mode": "fast"}),
        ("/faults", {"action": "explode"}),
        ("/webhook-faults", {"action": "lose"}),
        ("/seed", {"slug": "Not_Good"}),
    ],
)
def test_the_control_surface_refuses_nonsense(lab, path, body):
    with pytest.raises(httpx.HTTPStatusError) as caught:
        lab.sim("POST", path, body)
    assert caught.value.response.status_code == 400


def test_lab_events(lab, http):
    experiment_id = order(http, skip_draft=True).json()["experiment_id"]
    lab.advance(hours=1)
    assert lab.event("expire_quote", experiment_id)["status"] == "draft"
    hosted = order(http, auto_accept_quote=True).json()
    lab.event("pay_invoice", hosted["experiment_id"])
    assert http.get(f"/experiments/{hosted['experiment_id']}/invoice").json()["status"] == "paid"
    assert lab.settlements()[-1]["experiment_id"] == hosted["experiment_id"]
    forced = lab.event("force_status", experiment_id, status="done")
    assert forced == {"status": "done", "results_status": "all"}


def test_people_decide_on_the_pages(lab, http):
    experiment_id = order(http, skip_draft=True).json()["experiment_id"]
    lab.advance(hours=1)
    detail = http.get(f"/experiments/{experiment_id}").json()
    with httpx.Client(trust_env=False, follow_redirects=True) as browser:
        page = browser.get(detail["provider_quote_url"])
        assert page.status_code == 200
        action = re.search(r'action="([^"]*accept)"', page.text)[1]
        assert browser.post(page.url.join(action)).status_code == 200
        assert http.get(f"/experiments/{experiment_id}").json()["status"] == "waiting_for_materials"
        # A second click on an old page is told so, and changes nothing.
        assert browser.post(page.url.join(action)).status_code == 409
        invoice = browser.get(
            http.get(f"/experiments/{experiment_id}/invoice").json()["provider_invoice_url"]
        )
        action = re.search(r'action="([^"]*pay)"', invoice.text)[1]
        assert browser.post(invoice.url.join(action)).status_code == 200
        assert http.get(f"/experiments/{experiment_id}/invoice").json()["status"] == "paid"
        assert detail["code"] in browser.get(detail["experiment_url"]).text
        assert browser.get(f"{lab.base_url}/portal/quotes/guess/").status_code == 404


def test_rejecting_on_the_page(lab, http):
    experiment_id = order(http, skip_draft=True).json()["experiment_id"]
    lab.advance(hours=1)
    url = http.get(f"/experiments/{experiment_id}").json()["provider_quote_url"]
    answer = httpx.post(url + "reject", data={"reason": "price"}, trust_env=False)
    assert answer.status_code == 303
    assert http.get(f"/experiments/{experiment_id}").json()["status"] == "draft"


def test_an_advance_delivers_the_webhooks_before_it_returns(lab, http):
    with hook_server() as hook:
        hook.statuses = [503]
        order(http, auto_accept_quote=True, webhook_url=hook.url)
        lab.advance(days=16)
        updates = {json.loads(body)["data"]["update_id"] for _, body in hook.received}
        assert len(updates) == 8
    assert [row["outcome"] for row in lab.deliveries()][-1] == "delivered"


def test_organisations_come_with_their_own_tokens_and_clock(lab):
    other = lab.seed("neighbour", payment_policy=["x402-exact"])
    with lab.http(other.token) as client:
        assert client.get("/experiments").json()["total"] == 0
        assert client.get("/whoami").json()["active_organization_id"] == other.organization_id
    before = lab.clock()["now"]
    theirs = lab.sim("GET", "/clock", organization_id=other.organization_id)["now"]
    assert lab.advance(days=3, organization_id=other.organization_id)["now"] > theirs
    assert lab.clock()["now"] == before


def test_reset_empties_the_lab(local_lab):
    with local_lab.http() as client:
        order(client)
    local_lab.fault("reset")
    local_lab.reset()
    with local_lab.http() as client:
        assert client.get("/experiments").json()["total"] == 0
        assert client.get("/targets").json()["total"] > 0


def test_words_given_tokens_and_restarts(tmp_path):
    options = ("--provider-word", "acmepay", "--service-word", "Acme")
    known = {"token": "assay_labknown-member-token", "sim_token": "known-sim-token"}
    database = tmp_path / "lab.sqlite3"
    with LocalLab(database=database, options=options, **known) as lab:
        assert lab.token == known["token"]
        with lab.http() as client:
            sequences = {"acmepay_1": "MKV", "provider_2": "GHI"}
            body = {"experiment_spec": spec(sequences=sequences), "name": "x", "auto_accept_quote": True}
            created = client.post("/experiments", json=body).json()
            assert created["acmepay_invoice_id"]
            detail = client.get(f"/experiments/{created['experiment_id']}").json()
            assert "acmepay_quote_url" in detail
            assert not [name for name in detail if name.startswith("provider_")]
            # Names of sequences are the caller's own, and stay.
            assert set(detail["experiment_spec"]["sequences"]) == set(sequences)
            query = {"filter": f"eq(acmepay_invoice_id,{created['acmepay_invoice_id']})"}
            assert client.get("/invoices", params=query).json()["total"] == 1
            header = {"X-Acme-Payment-Method": "x402-exact"}
            machine = client.post("/experiments", json=body, headers=header)
            assert machine.status_code == 200
        lab.advance(days=2)
        now = lab.clock()["now"]
        lab.kill()
    with LocalLab(database=database, options=options, **known) as again, again.http() as client:
        assert again.clock()["now"] == now
        assert client.get(f"/experiments/{created['experiment_id']}").json()["name"] == "x"
        again.advance(days=15)
        assert client.get(f"/experiments/{created['experiment_id']}").json()["status"] == "done"
    assert known["token"].encode() not in database.read_bytes()


def test_auto_and_scaled_clocks_run_by_themselves():
    with LocalLab(clock="auto") as lab, lab.http() as client:
        experiment_id = order(client, auto_accept_quote=True).json()["experiment_id"]
        quoted = order(client, skip_draft=True).json()["experiment_id"]
        until(lambda: client.get(f"/experiments/{experiment_id}").json()["status"] == "done")
        # A quote waits for a person, however far the clock jumps for others.
        until(lambda: client.get(f"/experiments/{quoted}").json()["status"] == "quote_sent")
        for _ in range(4):
            other = order(client, auto_accept_quote=True).json()["experiment_id"]
            until(lambda other=other: client.get(f"/experiments/{other}").json()["status"] == "done")
        assert client.get(f"/experiments/{quoted}").json()["status"] == "quote_sent"
        lab.sim("POST", "/clock/mode", {"mode": "scaled", "seconds_per_day": 0.02})
        begin = lab.clock()["now"]
        scaled = order(client, auto_accept_quote=True).json()["experiment_id"]
        until(lambda: client.get(f"/experiments/{scaled}").json()["status"] == "done")
        assert lab.clock()["now"] > begin


def until(check, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.03)


def test_it_starts_quickly_ends_cleanly_and_imports_no_prefect():
    probe = (
        "import sys, runpy, threading, time\n"
        "sys.argv = ['lab', '--until-input-ends']\n"
        "runpy.run_module('prefect_assay.lab', run_name='__main__')\n"
        "assert not [name for name in sys.modules if name == 'prefect' or name.startswith('prefect.')]\n"
        "assert 'prefect_assay.client' not in sys.modules\n"
        "print('clean')\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", probe],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    begin = time.monotonic()
    ready = json.loads(process.stdout.readline())
    assert time.monotonic() - begin < 60  # about a second; the bound allows for a busy machine
    assert httpx.get(f"{ready['base_url']}/api/v1/info/health", trust_env=False).status_code == 200
    output, _ = process.communicate(timeout=15)
    assert (process.returncode, output.strip()) == (0, "clean")


def test_a_lab_that_ends_at_its_start_shows_what_it_printed():
    with pytest.raises(
        ConfigurationError, match=r"(?s)ended before it was ready.*unrecognized arguments: --warp"
    ):
        LocalLab(options=("--warp",)).start()


def test_a_lab_that_is_not_ready_in_time_is_distinguished_from_one_that_ended(monkeypatch):
    monkeypatch.setattr(testing, "START_SECONDS", 0.0)
    with pytest.raises(ConfigurationError, match="was not ready after 0 s"):
        LocalLab().start()


def test_sigterm_ends_it_with_success():
    lab = LocalLab().start()
    process = lab._process
    process.terminate()
    assert process.wait(timeout=15) == 0
    lab.stop()
