"""The rules of deliveries (contract 6): what the lab sends over HTTP, and what a receiver believes."""

import hashlib
import hmac
import json
import uuid
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from lab_support.hook_server import hook_server
from prefect_assay.errors import MalformedDelivery, SignatureError
from prefect_assay.service.webhook_signature import verify
from support.lab.organisations import organisation
from support.rules.register import client_holds, lab_holds

SECRET = "experiment-secret-" + "x" * 32
ORG_SECRET = "organisation-secret-" + "y" * 32
DEPLOYMENT_SECRET = "deployment-secret-" * 2


@pytest.fixture
def hook():
    with hook_server() as running:
        yield running


def signature(body, secret):
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def read(headers, body, *secrets):
    return verify(body, headers, secrets, now=datetime.now(UTC), tolerance=None)


@pytest.fixture
def delivery(org, hook):
    """One genuine delivery: headers and body."""
    org.made(skip_draft=True, webhook_url=hook.url, webhook_secret=SECRET)
    org.advance(seconds=1)
    return hook.received[0]


@lab_holds("6.body", "6.headers")
def test_a_delivery_has_the_listed_fields(org, hook):
    made = org.made(auto_accept_quote=True, webhook_url=hook.url, webhook_secret=SECRET)
    org.advance(days=16)
    assert len(hook.received) >= 5
    for headers, raw in hook.received:
        body = json.loads(raw)
        assert set(body) == {"delivery_id", "event", "timestamp", "api_version", "data"}
        assert set(body["data"]) >= {
            "type", "experiment_id", "experiment_code", "organization_id", "update_id", "name", "description",
            "update_type", "eta", "created_at",
        }  # fmt: skip
        assert body["event"] == headers["X-Service-Event"] == "experiment_update"
        assert body["data"]["type"] == "experiment.update"
        assert body["delivery_id"] == headers["X-Service-Delivery-Id"] == str(uuid.UUID(body["delivery_id"]))
        year, month = body["api_version"].split("-")
        assert (len(year), len(month)) == (4, 2)
        assert headers["X-Service-Signature"] == signature(raw, SECRET)
        assert (body["data"]["experiment_id"], body["data"]["organization_id"]) == (
            made["experiment_id"],
            org.id,
        )
        for moment in (body["timestamp"], body["data"]["created_at"], body["data"]["eta"]):
            assert datetime.fromisoformat(moment).tzinfo
        assert read(headers, raw, "an older secret", SECRET).data.experiment_code == made["experiment_code"]


@client_holds("6.1")
@pytest.mark.parametrize("spoil", ["body", "signature", "none", "scheme", "secret"])
def test_a_receiver_believes_nothing_that_is_not_signed(delivery, spoil):
    headers, raw = delivery
    name = "X-Service-Signature"
    spoilt = {
        "body": (headers, raw.replace(b"experiment.update", b"experiment.upsate")),
        "signature": (headers | {name: "sha256=" + "0" * 64}, raw),
        "none": ({key: value for key, value in headers.items() if key != name}, raw),
        "scheme": (headers | {name: headers[name].removeprefix("sha256=")}, raw),
        "secret": (headers | {name: signature(raw, "another")}, raw),
    }[spoil]
    assert read(headers, raw, SECRET)
    with pytest.raises(SignatureError) as caught:
        read(*spoilt, SECRET)
    assert not isinstance(caught.value, MalformedDelivery)


@client_holds("6.kind")
def test_a_receiver_takes_another_event_for_the_one_there_is(delivery):
    """A refusal would be for good (rule 3); a delivery is a hint to look, whatever it is called."""
    headers, raw = delivery
    other = raw.replace(b'"experiment_update"', b'"experiment_deletion"')
    signed = headers | {
        "X-Service-Signature": signature(other, SECRET),
        "X-Service-Event": "experiment_deletion",
    }
    assert read(signed, other, SECRET).data == read(headers, raw, SECRET).data


@lab_holds("6.2")
def test_the_secret_is_the_experiments_else_the_organisations_else_the_deployments(lab, hook):
    with organisation(lab) as org:
        org.made(skip_draft=True, webhook_url=hook.url)
        org.advance(seconds=1)
        assert read(*hook.received[-1], DEPLOYMENT_SECRET)
    with organisation(lab, webhook_secret=ORG_SECRET) as org:
        org.made(skip_draft=True, webhook_url=hook.url)
        org.advance(seconds=1)
        assert read(*hook.received[-1], ORG_SECRET)
        org.made(skip_draft=True, webhook_url=hook.url, webhook_secret=SECRET)
        org.advance(seconds=1)
        assert read(*hook.received[-1], SECRET)


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
    experiment_id = org.made(skip_draft=True, webhook_url=hook.url)["experiment_id"]
    hook.statuses = [500, 503, 500, 502, 500]
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


@lab_holds("6.5")
def test_the_feed_holds_the_same_updates(org, hook):
    experiment_id = org.made(auto_accept_quote=True, webhook_url=hook.url, webhook_secret=SECRET)[
        "experiment_id"
    ]
    org.advance(days=16)
    sent = [json.loads(raw)["data"]["update_id"] for _, raw in hook.received]
    feed = org.http.get("/updates", params={"filter": f"eq(experiment_id,{experiment_id})"}).json()["items"]
    assert sent == [row["id"] for row in reversed(feed)]
    oldest_first = org.http.get(f"/experiments/{experiment_id}/updates").json()["items"]
    assert sent == [row["id"] for row in oldest_first]
    assert sent == [update.id for update in org.client.experiments.iterate_updates(experiment_id)]
