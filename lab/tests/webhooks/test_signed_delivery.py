"""Signed webhooks with retries (contract 6), delivered to a real receiver."""

import hashlib
import hmac
import json
import time
from datetime import datetime, timedelta
from itertools import pairwise
from types import SimpleNamespace

import pytest

from assay_lab.kernel import schedule, times
from assay_lab.kernel.faults import WebhookFault
from assay_lab.words import WireWords
from lab_support.core import EPOCH, advance, get, lab_core, order

SECRET = "experiment-secret-" + "x" * 32


@pytest.fixture
def core():
    made = lab_core(
        allow_http_webhooks=True, deployment_secret="deployment-secret", words=WireWords(service="Acme")
    )
    yield made
    made.close()


def signature(body, secret):
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def journal(core):
    with core.lab.store.transaction() as db:
        return db.all("SELECT * FROM deliveries ORDER BY id")


def test_every_update_is_delivered_signed_and_in_order(core, hook):
    body = order(core, auto_accept_quote=True, webhook_url=hook.url, webhook_secret=SECRET).body
    seen = []
    hook.on_receive = lambda _: seen.append(get(core, f"/experiments/{body['experiment_id']}")["status"])
    advance(core, days=16)
    feed = get(core, f"/experiments/{body['experiment_id']}/updates")["items"]
    contents = [json.loads(raw) for _, raw in hook.received]
    assert [content["data"]["update_id"] for content in contents] == [update["id"] for update in feed]
    assert contents[0]["data"]["eta"] == times.stamp(EPOCH + timedelta(days=15))
    for headers, raw in hook.received:
        content = json.loads(raw)
        assert headers["X-Acme-Signature"] == signature(raw, SECRET)
        assert headers["X-Acme-Event"] == content["event"] == "experiment_update"
        assert headers["X-Acme-Delivery-Id"] == content["delivery_id"]
        assert content["data"]["experiment_code"] == body["experiment_code"]
        assert content["data"]["type"] == "experiment.update"
        assert content["data"]["organization_id"] == core.seeded.organization_id
        assert "status" not in content["data"]
    # A receiver that reads the experiment sees the state of its update, not that of the end.
    assert seen[-2:] == ["in_review", "done"]
    assert SECRET not in json.dumps(get(core, f"/experiments/{body['experiment_id']}"))


def pauses(core):
    """Seconds of lab time between the attempts."""
    sent = [datetime.fromisoformat(row["sent_at"]) for row in journal(core)]
    return [(later - earlier).total_seconds() for earlier, later in pairwise(sent)]


def test_one_advance_over_the_back_off_sends_each_retry_at_its_own_lab_time(core, hook):
    hook.statuses = [500, 503, 502]
    experiment_id = order(core, skip_draft=True, webhook_url=hook.url).body["experiment_id"]
    seen = []
    hook.on_receive = lambda _: seen.append(get(core, f"/experiments/{experiment_id}")["status"])
    with core.lab.store.transaction() as db:  # the quote comes between the second and the third retry
        item = schedule.find_queued(db, experiment_id, "quote_ready")
        schedule.put_off(db, item, EPOCH + timedelta(seconds=100))
    advance(core, hours=1)
    assert pauses(core) == [30, 60, 120, 0]  # the update of the quote waits for the one before it
    assert seen == ["waiting_for_confirmation"] * 3 + ["quote_sent"] * 2
    assert [row["outcome"] for row in journal(core)] == ["retry"] * 3 + ["delivered"] * 2
    assert get(core, f"/experiments/{experiment_id}")["status"] == "quote_sent"


def test_until_idle_the_retries_are_the_labs_to_make(core, hook):
    hook.statuses = [500, 503, 502, 204, 500, 503, 502]
    order(core, skip_draft=True, webhook_url=hook.url)
    core.clock_driver.until_idle(core.seeded.organization_id)
    assert [row["outcome"] for row in journal(core)] == (["retry"] * 3 + ["delivered"]) * 2


def test_a_clock_that_jumps_keeps_the_pauses(hook):
    core = lab_core(allow_http_webhooks=True, clock_mode="auto")
    hook.statuses = [500, 503, 502]
    order(core, skip_draft=True, webhook_url=hook.url)
    core.clock_driver._tend(core.seeded.organization_id)
    assert pauses(core)[:3] == [30, 60, 120]
    assert [row["outcome"] for row in journal(core)][3:] == ["delivered"] * 2
    core.close()


def test_faults_drop_double_and_forge(core, hook):
    for action in ("drop", "double", "bad_signature"):
        core.webhook_faults.append(WebhookFault(action=action))
    for _ in range(4):
        order(core, skip_draft=True, webhook_url=hook.url)
    core.sender.deliver(core.seeded.organization_id)
    assert [row["fault"] for row in journal(core)] == ["drop", "double", "bad_signature", None]
    genuine = [
        headers["X-Acme-Signature"] == signature(raw, "deployment-secret") for headers, raw in hook.received
    ]
    assert genuine == [True, True, False, True]
    assert hook.received[0][1] == hook.received[1][1]


def test_the_outbox_survives_the_lab(tmp_path, hook):
    first = lab_core(allow_http_webhooks=True, database=tmp_path / "lab.sqlite3")
    order(first, skip_draft=True, webhook_url=hook.url)
    first.close()
    assert hook.received == []
    second = lab_core(allow_http_webhooks=True, database=tmp_path / "lab.sqlite3")
    second.start()
    deadline = time.monotonic() + 60
    while not hook.received and time.monotonic() < deadline:
        time.sleep(0.02)
    second.close()
    assert len(hook.received) == 1


def test_back_off_can_run_on_the_real_clock(hook, monkeypatch):
    waits, now = [], time.time() + 60
    clock = SimpleNamespace(time=lambda: now, sleep=waits.append)
    monkeypatch.setattr("assay_lab.webhooks.sender.time", clock)
    core = lab_core(allow_http_webhooks=True, retry_on_real_clock=True)
    hook.statuses = [500]
    order(core, skip_draft=True, webhook_url=hook.url)
    advance(core, seconds=1)
    assert waits == [0.0, pytest.approx(0.5, abs=1e-3)]
    assert len(hook.received) == 2
    core.close()
