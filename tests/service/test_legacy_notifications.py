"""Status changes of the earlier interface variant: hints to look, still signed (contract 9.4)."""

import json
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from starlette.testclient import TestClient

from prefect_assay.campaigns.receiver import endpoint
from prefect_assay.campaigns.receiver.receiver import create_app
from prefect_assay.campaigns.receiver.settings import ReceiverSettings
from prefect_assay.errors import SignatureError
from prefect_assay.service.webhook_signature import derive_secret, sign, verify
from support.webhooks.deliveries import ORDER_KEY, SIGNING_KEY, body_of

SECRET = derive_secret(SIGNING_KEY, ORDER_KEY)
NOW = datetime(2026, 3, 2, tzinfo=UTC)
CHANGE = {"experiment_id": "e-1", "previous_status": "QuoteSent", "new_status": "WaitingForMaterials"}


def read(body, *, secret=SECRET, tolerance=timedelta(minutes=5)):
    raw = json.dumps(body).encode()
    headers = {"X-Service-Signature": sign(raw, secret)}
    return verify(raw, headers, [SECRET], now=NOW, tolerance=tolerance)


@pytest.mark.parametrize(
    "body",
    [
        CHANGE,
        {"event": "experiment_status_changed", "data": CHANGE},
        {"experimentId": "e-1", "previousStatus": "quote_sent", "newStatus": "waiting_for_materials"},
        CHANGE | {"timestamp": NOW.isoformat()},
        CHANGE | {"timestamp": "some time ago"},
    ],
)
def test_a_status_change_is_read_as_a_delivery(body):
    delivery = read(body)
    assert delivery.data.experiment_id == "e-1"
    assert delivery.data.name == "quote_sent to waiting_for_materials"
    assert (delivery.event, delivery.data.update_type) == ("status_change", "status_change")


def test_it_has_to_be_signed():
    with pytest.raises(SignatureError, match="signature"):
        read(CHANGE, secret="x" * 40)


def test_a_time_that_is_given_is_compared():
    with pytest.raises(SignatureError, match="tolerance"):
        read(CHANGE | {"timestamp": "2020-01-01T00:00:00Z"})


@pytest.mark.parametrize(
    "body",
    [CHANGE | {"new_status": ""}, CHANGE | {"experiment_id": 7}, {"update_id": "u", **CHANGE}, [CHANGE], 3],
)
def test_what_is_neither_is_malformed(body):
    with pytest.raises(SignatureError):
        read(body)


def test_the_receiver_wakes_once_for_the_same_notification():
    woken = []

    async def wake(experiment_id, *_):
        woken.append(experiment_id)
        return 1

    settings = ReceiverSettings(signing_keys=[SIGNING_KEY], announce=False)
    client = TestClient(create_app(settings, wake=wake))
    path = f"{settings.path_prefix}/{ORDER_KEY}"
    raw = json.dumps(CHANGE).encode()
    headers = {"X-Service-Signature": sign(raw, SECRET)}
    answers = [client.post(path, content=raw, headers=headers) for _ in range(2)]
    assert [a.json() for a in answers] == [{"resumed": 1}, {"resumed": 0}]
    assert woken == ["e-1"]
    assert client.post(path, content=body_of(), headers=headers).status_code == 401


@pytest.fixture
def later(monkeypatch):
    """Moves the receiver's clocks, which run as usual but for that."""
    ahead = [0.0]

    class Moved(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(seconds=ahead[0])

    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + ahead[0])
    monkeypatch.setattr(endpoint, "time", clock)
    monkeypatch.setattr(endpoint, "datetime", Moved)
    return lambda seconds: ahead.__setitem__(0, ahead[0] + seconds)


@pytest.mark.parametrize(
    "timeless",
    [CHANGE, CHANGE | {"timestamp": "some time ago"}, {"event": "x", "data": CHANGE | {"created_at": None}}],
    ids=["none", "unreadable", "null"],
)
def test_without_a_readable_time_it_wakes_once_however_late_it_is_repeated(later, timeless):
    woken = []

    async def wake(experiment_id, *_):
        woken.append(experiment_id)
        return 1

    client = TestClient(
        create_app(ReceiverSettings(signing_keys=[SIGNING_KEY], announce=False), wake=wake),
        raise_server_exceptions=True,
    )
    raw = json.dumps(timeless).encode()
    headers = {"X-Service-Signature": sign(raw, SECRET)}
    for _ in range(4):
        assert client.post(f"/assay/{ORDER_KEY}", content=raw, headers=headers).status_code == 200
        later(86_400)
    assert woken == ["e-1"]
    # The next status of the same experiment is another notification.
    raw = json.dumps(CHANGE | {"new_status": "InProduction"}).encode()
    client.post(f"/assay/{ORDER_KEY}", content=raw, headers={"X-Service-Signature": sign(raw, SECRET)})
    assert woken == ["e-1", "e-1"]


def test_the_time_of_the_notification_counts_before_that_of_the_experiment():
    """`created_at` may be the experiment's, which is weeks old."""
    assert read({"timestamp": NOW.isoformat(), "data": CHANGE | {"created_at": "2020-01-01T00:00:00Z"}})


@pytest.mark.parametrize("inner", [{"timestamp": "some time ago"}, {"created_at": 7e99}], ids=repr)
def test_an_unreadable_time_inside_does_not_hide_the_one_outside(inner):
    """Else a replay would be accepted again and again."""
    old = {"timestamp": "2020-01-01T00:00:00Z"}
    with pytest.raises(SignatureError, match="tolerance"):
        read({"event": "x", **old, "data": CHANGE | inner})
