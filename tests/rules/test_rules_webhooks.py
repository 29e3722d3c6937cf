"""The rules of deliveries (contract 6): what the lab sends over HTTP, and what a receiver makes of it."""

import json
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from lab_support.described import find_strict_problems
from lab_support.hook_server import hook_server
from prefect_assay.service.description import load_description
from prefect_assay.service.webhook_signature import verify
from support.description import find_problems
from support.rules.register import lab_holds

SECRET = "experiment-secret-" + "x" * 32


@pytest.fixture
def hook():
    with hook_server() as running:
        yield running


@lab_holds("6.body", "6.headers")
def test_a_delivery_is_as_described_and_its_receiver_believes_it(org, hook):
    described = load_description()["webhooks"]["experiment_update"]["post"]
    schema = described["requestBody"]["content"]["application/json"]["schema"]
    made = org.made(auto_accept_quote=True, webhook_url=hook.url, webhook_secret=SECRET)
    org.advance(days=16)
    assert len(hook.received) >= 5
    for headers, raw in hook.received:
        body = json.loads(raw)
        assert find_strict_problems(body, schema) == []
        assert None not in body["data"].values()
        for header in described["parameters"]:
            assert find_problems(headers[header["name"]], header["schema"]) == []
        assert (headers["X-Service-Event"], headers["X-Service-Delivery-Id"]) == (
            body["event"],
            body["delivery_id"],
        )
        assert (body["event"], body["data"]["type"]) == ("experiment_update", "experiment.update")
        read = verify(raw, headers, ("an older secret", SECRET), now=datetime.now(UTC), tolerance=None)
        assert (read.data.experiment_id, read.data.experiment_code) == (
            made["experiment_id"],
            made["experiment_code"],
        )
        assert body["data"]["organization_id"] == org.id
    done = body["data"]
    assert done["eta"] == done["created_at"]


@lab_holds("6.3.acknowledged", "6.3.permanent")
@pytest.mark.parametrize(
    ("status", "outcome"),
    [(200, "delivered"), (202, "delivered"), (400, "failed"), (410, "failed"), (429, "failed")],
)
def test_what_ends_a_delivery(org, hook, status, outcome):
    hook.statuses = [status]
    experiment_id = org.made(skip_draft=True, webhook_url=hook.url)["experiment_id"]
    org.advance(seconds=1)
    (attempt,) = org.lab.deliveries(experiment_id=experiment_id)
    assert (attempt["status"], attempt["outcome"]) == (status, outcome)
    assert len(hook.received) == 1


@lab_holds("6.3.retried", "8.retries")
def test_what_is_tried_again(org, hook):
    org.lab.plan(quote_minutes=30)  # no further update within the four minutes
    hook.statuses = [500, 503, 500, 502, 500]
    experiment_id = org.made(skip_draft=True, webhook_url=hook.url)["experiment_id"]
    org.advance(minutes=4)
    attempts = org.lab.deliveries(experiment_id=experiment_id)
    assert [row["outcome"] for row in attempts] == ["retry"] * 3 + ["failed"]
    sent = [datetime.fromisoformat(row["sent_at"]) for row in attempts]
    pauses = [(later - earlier).total_seconds() for earlier, later in pairwise(sent)]
    assert pauses == [30, 60, 120]  # exponential, on the lab's clock
    assert len({json.loads(raw)["data"]["update_id"] for _, raw in hook.received}) == 1
    assert len({headers["X-Service-Delivery-Id"] for headers, _ in hook.received}) == len(hook.received) == 4
    nowhere = org.made(skip_draft=True, webhook_url="http://127.0.0.1:9/nobody")["experiment_id"]
    org.advance(minutes=4)
    assert len(org.lab.deliveries(experiment_id=nowhere)) == 4


@lab_holds("6.4")
def test_the_address_changes_at_any_status(org, hook):
    experiment_id = org.made(auto_accept_quote=True)["experiment_id"]
    org.advance(days=2)
    assert not hook.received
    answer = org.http.patch(f"/experiments/{experiment_id}", json={"webhook_url": hook.url})
    assert answer.json()["updated"] is True
    org.advance(days=15)
    assert hook.received
    seen = len(hook.received)
    assert (
        org.http.patch(f"/experiments/{experiment_id}", json={"webhook_url": None}).json()["updated"] is True
    )
    org.lab.event("progress", experiment_id)
    org.advance(seconds=1)
    assert len(hook.received) == seen
