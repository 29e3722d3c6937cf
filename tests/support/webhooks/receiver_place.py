"""A receiver on a real socket whose wake-ups are recorded, and held up or failed on request."""

import asyncio
import contextlib
import time

import httpx
import pytest

from prefect_assay.campaigns.receiver.receiver import Receiver
from prefect_assay.campaigns.receiver.settings import ReceiverSettings
from prefect_assay.service.webhook_signature import derive_secret
from support.services.asgi import served
from support.webhooks.deliveries import ORDER_KEY, SIGNING_KEY, headers_of

SECRET = derive_secret(SIGNING_KEY, ORDER_KEY)
PATH = f"/assay/{ORDER_KEY}"


class Wake:
    """Records what it is asked to wake; fails while told to."""

    def __init__(self):
        self.asked = []
        self.orders = []
        self.running = self.most_at_once = 0
        self.failing = False
        self.held = False
        self.seconds = 0.0
        self.resumes = 1

    async def __call__(self, experiment_id, order_key, expected):
        self.asked.append(experiment_id)
        self.orders.append(order_key)
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        try:
            await asyncio.sleep(self.seconds)
            while self.held:  # noqa: ASYNC110 - set from another thread
                await asyncio.sleep(0.01)
            if self.failing:
                raise ConnectionError("Prefect is not there")
        finally:
            self.running -= 1
        return self.resumes


class Place:
    """A running receiver, its recorded wake-ups."""

    def __init__(self, url, wake, receiver):
        self.url, self.wake, self.receiver = url, wake, receiver

    def post(self, body, headers=None, path=PATH):
        return httpx.post(
            self.url + path, content=body, headers=headers or headers_of(body, SECRET), timeout=10
        )


@contextlib.contextmanager
def running(**options):
    wake = Wake()
    receiver = Receiver(ReceiverSettings(**{"signing_keys": (SIGNING_KEY,)} | options), wake=wake)
    with served(receiver.app) as url:
        yield Place(url, wake, receiver)
    receiver.close()


def metric(place, name, **labels):
    return place.receiver.metrics.registry.get_sample_value(name, labels)


def until(true, seconds=10):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.01)


def settings(**options):
    """For a test whose `receiver` has settings of its own."""
    return pytest.mark.parametrize("receiver", [options], indirect=True, ids=["-".join(options)])
