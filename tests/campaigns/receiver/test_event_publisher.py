"""The Prefect event of an update: one id per update, the service's clock in the payload."""

from datetime import UTC, datetime, timedelta

import pytest
from prefect.events.clients import AssertingEventsClient
from prefect.events.worker import EventsWorker
from prefect.settings import PREFECT_API_URL, temporary_settings

from prefect_assay.campaigns.receiver.event_publisher import emit_update_event, event_id
from prefect_assay.service.models.update import Delivery
from support.webhooks.deliveries import body_of


def delivery(**changes) -> Delivery:
    return Delivery.model_validate_json(body_of(data_experiment_id="e-1", data_update_id="u-1", **changes))


@pytest.fixture
def emitted(monkeypatch):
    """What Prefect's own worker hands to its client."""
    AssertingEventsClient.reset()
    # With an address the worker starts no server of its own; nothing is sent to it.
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}):
        worker = EventsWorker.instance(AssertingEventsClient)
    monkeypatch.setattr(EventsWorker, "instance", lambda *_: worker)

    def events():
        worker.drain()
        return [event for client in AssertingEventsClient.all for event in client.events]

    yield events
    AssertingEventsClient.reset()


def test_event(emitted):
    emit_update_event(delivery(timestamp="2031-01-01T00:00:00Z"))
    (event,) = emitted()
    assert event.event == "assay.experiment.update"
    assert event.resource.id == "assay.experiment.e-1"
    assert event.payload["experiment_id"] == "e-1"
    assert event.payload["update_type"] == "status_change"
    assert event.payload["service_time"] == "2031-01-01T00:00:00+00:00"
    assert abs(datetime.now(UTC) - event.occurred) < timedelta(minutes=1)
    assert event.id == event_id(delivery())


def test_one_id_per_update_whatever_the_attempt():
    assert event_id(delivery()) == event_id(delivery(delivery_id="another attempt"))
    assert event_id(delivery()) != event_id(Delivery.model_validate_json(body_of(data_experiment_id="e-1")))
