"""Status changes of the earlier interface variant: hints to look, still signed (contract 9.4)."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from starlette.testclient import TestClient

from prefect_assay.errors import SignatureError
from prefect_assay.webhooks.receiver import create_app
from prefect_assay.webhooks.settings import ReceiverSettings
from prefect_assay.webhooks.signature import derive_secret, sign, verify
from support.deliveries import ORDER_KEY, SIGNING_KEY, body_of

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

    async def wake(experiment_id):
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
