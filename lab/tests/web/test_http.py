"""The lab as its own process, over real HTTP."""

import json
import os
import re
import subprocess
import sys
import zipfile
from io import BytesIO

import httpx
import pytest

from assay_lab import testing
from assay_lab.errors import ConfigurationError
from assay_lab.testing import LocalLab
from assay_lab.web import server
from lab_support.core import spec
from lab_support.hook_server import hook_server


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


def test_an_idle_connection_is_closed_by_the_client():
    assert httpx.Limits().keepalive_expiry < server.KEEP_ALIVE_SECONDS


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


def test_a_killed_lab_goes_on_where_it_was_with_its_given_tokens_and_words(tmp_path):
    known = {
        "token": "assay_labknown-member-token",
        "sim_token": "known-sim-token",
        "database": tmp_path / "lab.sqlite3",
    }
    words = ("--provider-word", "acmepay", "--service-word", "Acme")
    with LocalLab(options=words, **known) as lab, lab.http() as client:
        assert lab.token == known["token"]
        sequences = {"acmepay_1": "MKV", "provider_2": "GHI"}
        body = {"experiment_spec": spec(sequences=sequences), "name": "x", "auto_accept_quote": True}
        created = client.post("/experiments", json=body).json()
        assert created["acmepay_invoice_id"]
        machine = client.post("/experiments", json=body, headers={"X-Acme-Payment-Method": "x402-exact"})
        assert machine.status_code == 200
        query = {"filter": f"eq(acmepay_invoice_id,{created['acmepay_invoice_id']})"}
        assert client.get("/invoices", params=query).json()["total"] == 1
        lab.advance(days=2)
        now = lab.clock()["now"]
        lab.kill()
        lab.start()
        assert lab.clock()["now"] == now
        lab.advance(days=15)
        with lab.http() as again:
            detail = again.get(f"/experiments/{created['experiment_id']}").json()
    # Names of sequences are the caller's own, and stay.
    assert (detail["status"], set(detail["experiment_spec"]["sequences"])) == ("done", set(sequences))
    assert "acmepay_quote_url" in detail
    assert known["token"].encode() not in known["database"].read_bytes()


def test_it_starts_ends_cleanly_and_imports_no_prefect():
    probe = (
        "import sys, runpy, threading, time\n"
        "sys.argv = ['lab', '--until-input-ends']\n"
        "runpy.run_module('assay_lab', run_name='__main__')\n"
        "assert not [name for name in sys.modules if name.split('.')[0] in {'prefect', 'prefect_assay'}]\n"
        "print('clean')\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", probe],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    ready = json.loads(process.stdout.readline())
    assert httpx.get(f"{ready['base_url']}/api/v1/info/health", trust_env=False).status_code == 200
    output, _ = process.communicate(timeout=15)
    assert (process.returncode, output.strip()) == (0, "clean")


def test_a_lab_that_is_not_ready_in_time_is_distinguished_from_one_that_ended(monkeypatch):
    monkeypatch.setattr(testing, "START_SECONDS", 0.0)
    with pytest.raises(ConfigurationError, match="was not ready after 0 s"):
        LocalLab().start()


def test_reset_empties_the_lab_and_sigterm_ends_it_with_success(lab):
    lab.fault("reset")
    lab.reset()
    with lab.http() as client:
        assert client.get("/experiments").json()["total"] == 0
        assert client.get("/targets").json()["total"] > 0
    process = lab._process
    process.terminate()
    assert process.wait(timeout=15) == 0
