"""The kept Prefect client: one wake-up at a time, through restarts, and never a server of its own."""

import asyncio
import threading
import time
import uuid
from datetime import UTC, datetime

import httpx
import pytest
import uvicorn
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.settings import PREFECT_API_URL, temporary_settings
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from prefect_assay.campaigns.receiver.receiver import create_app
from prefect_assay.campaigns.receiver.settings import ReceiverSettings
from prefect_assay.campaigns.runs.wake import Waker
from prefect_assay.errors import ConfigurationError
from prefect_assay.local.environment import free_ports
from prefect_assay.service.webhook_signature import derive_secret
from support.services.asgi import served
from support.webhooks.deliveries import ORDER_KEY, SIGNING_KEY, body_of, headers_of


class Api:
    """The two questions of a wake-up as Prefect's API answers them, and the ways in which it does not."""

    def __init__(self):
        self.requests = []
        self.refusals = []  # statuses of the next answers
        self.under_way = self.most_at_once = 0
        self.held = threading.Event()
        self.labels = {}
        self.refuses_labels = False
        self.tags = []  # of the run that waits, beside its experiment's
        self.asks_a_person = False
        self.clients = set()
        self.app = Starlette(
            routes=[
                Route("/api/csrf-token", self._token),
                Route("/api/flow_runs/filter", self._filter, methods=["POST"]),
                Route("/api/flow_runs/{id}/labels", self._label, methods=["PATCH"]),
                Route("/api/flow_runs/{id}/resume", self._resume, methods=["POST"]),
            ]
        )

    async def _token(self, _):
        self.requests.append("token")
        return JSONResponse({"exception_message": "CSRF protection is disabled."}, 422)

    async def _filter(self, request):
        self.requests.append("filter")
        self.clients.add(request.client.port)
        if self.refusals:
            return Response(status_code=self.refusals.pop(0))
        tag = (await request.json())["flow_runs"]["tags"]["all_"][0]
        state = State(type=StateType.PAUSED, name="Suspended")
        if self.asks_a_person:
            state.state_details.run_input_keyset = {"response": "r", "schema": "s", "description": "d"}
        run = FlowRun(id=uuid.uuid4(), flow_id=uuid.uuid4(), tags=[tag, *self.tags], state=state)
        return JSONResponse([run.model_dump(mode="json")] if "anybody" not in tag else [])

    async def _label(self, request):
        self.requests.append("label")
        if self.refuses_labels:
            return Response(status_code=404)
        self.labels = await request.json()
        return Response(status_code=204)

    async def _resume(self, _):
        self.requests.append("resume")
        self.under_way += 1
        self.most_at_once = max(self.most_at_once, self.under_way)
        try:
            while self.held.is_set():  # noqa: ASYNC110 - set from another loop
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.005)
        finally:
            self.under_way -= 1
        return JSONResponse({"state": None, "status": "ACCEPT", "details": {"type": "accept_details"}})


@pytest.fixture(scope="module")
def place():
    api = Api()
    with served(api.app) as url, temporary_settings({PREFECT_API_URL: f"{url}/api"}):
        yield api


@pytest.fixture
def api(place):
    place.requests.clear()
    place.clients.clear()
    place.refusals, place.tags, place.most_at_once = [], [], 0
    place.labels, place.refuses_labels, place.asks_a_person = {}, False, False
    yield place
    place.held.clear()


@pytest.fixture
def waker(api):
    made = Waker(patience_seconds=15)
    yield made
    made.close()


def test_one_client_and_one_wake_up_at_a_time(api, waker):
    async def burst():
        return await asyncio.gather(*(waker(str(number)) for number in range(30)))

    assert asyncio.run(burst()) == [1] * 30
    assert api.most_at_once == 1
    assert api.requests.count("resume") == 30
    assert api.requests.count("token") <= 1  # asked once per client, not once per wake-up
    assert len(api.clients) == 1  # one connection


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_run_knows_when_results_are_expected_before_it_is_resumed(api, waker, is_refused):
    api.refuses_labels = is_refused
    assert asyncio.run(waker("e-1", None, datetime(2026, 12, 2, tzinfo=UTC))) == 1
    assert [one for one in api.requests if one in {"label", "resume"}] == ["label", "resume"]
    assert api.labels == ({} if is_refused else {"assay.expected.e-1": "2026-12-02T00:00:00+00:00"})


def test_a_run_that_asks_a_person_is_left_to_the_answer(api, waker):
    api.asks_a_person = True
    assert asyncio.run(waker("e-1")) == 0
    assert "resume" not in api.requests


@pytest.mark.parametrize("refusals", [[503], [503, 503, 500], [429], [403]])
def test_a_refusal_that_may_pass_is_tried_again(api, waker, refusals):
    """403 once: a Prefect that was set up again no longer knows a kept client's CSRF token."""
    api.refusals = list(refusals)
    assert asyncio.run(waker("e-1")) == 1


def test_no_wake_up_waits_for_the_pauses_of_prefects_own_client(api):
    """It sleeps for two seconds after such an answer, even with its retries switched off."""
    waker = Waker(patience_seconds=2)
    api.refusals = [503, 502, 429]
    assert asyncio.run(waker("e-1")) == 1
    waker.close()


def test_a_refusal_for_good_is_no_reason_to_hold_up_the_others(api, waker):
    api.refusals = [401, 401]
    start = time.monotonic()
    with pytest.raises(httpx.HTTPStatusError):
        asyncio.run(waker("e-1"))
    assert time.monotonic() - start < 12
    assert asyncio.run(waker("e-2")) == 1


def test_readiness_is_answered_in_the_middle_of_a_wake_up(api, waker):
    async def both():
        api.held.set()
        waking = asyncio.create_task(waker("e-1"))
        async with asyncio.timeout(20):
            while "resume" not in api.requests:  # noqa: ASYNC110 - filled on another loop
                await asyncio.sleep(0.01)
            await waker.ready()
        assert not waking.done()
        api.held.clear()
        return await waking

    assert asyncio.run(both()) == 1


def test_prefect_restarts_and_the_wake_up_waits_for_it():
    """The kept connection is gone, then no server listens, then a new one does."""
    api = Api()
    (port,) = free_ports(1)

    def start():
        server = uvicorn.Server(
            uvicorn.Config(api.app, host="127.0.0.1", port=port, log_level="critical", lifespan="off")
        )
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        return server, thread

    def stop(server, thread):
        server.should_exit = True
        thread.join(10)

    with temporary_settings({PREFECT_API_URL: f"http://127.0.0.1:{port}/api"}):
        waker = Waker(patience_seconds=20)
        running = start()
        assert asyncio.run(waker("e-1")) == 1
        stop(*running)
        with pytest.raises(httpx.TransportError):
            asyncio.run(waker.ready())
        threading.Timer(1.0, lambda: again.append(start())).start()
        again = []
        assert asyncio.run(waker("e-2")) == 1
        asyncio.run(waker.ready())
        stop(*again[0])
        waker.close()


@pytest.fixture
def receiver(api, waker):
    """The receiver in front of the real wake-up; posts genuine deliveries to the address of a key."""
    settings = ReceiverSettings(signing_keys=(SIGNING_KEY,))
    with served(create_app(settings, wake=waker)) as url:

        def post(key):
            body = body_of(data_experiment_id="e-1")
            headers = headers_of(body, derive_secret(SIGNING_KEY, key))
            return httpx.post(f"{url}/assay/{key}", content=body, headers=headers).json()["resumed"]

        yield post


def test_a_leaked_secret_wakes_no_run_of_another_order(api, receiver, caplog):
    api.tags = ["assay-archive:a", "assay-order:" + ORDER_KEY]
    assert receiver("f" * 20) == 0
    assert api.requests.count("filter") == 1
    assert "resume" not in api.requests
    assert "f" * 20 in caplog.text
    assert "leaked" in caplog.text
    assert receiver(ORDER_KEY) == 1


def test_knowing_the_order_costs_no_request(api, receiver):
    """The search and the resumption, as without it."""
    receiver(ORDER_KEY)
    api.requests.clear()
    api.tags = ["assay-order:" + ORDER_KEY]
    assert receiver(ORDER_KEY) == 1
    assert api.requests == ["filter", "resume"]


@pytest.mark.parametrize("key", ["0" * 20, "0" * 10 + "12ab34cd56"])
def test_the_address_of_an_organisation_wakes_the_runs_of_every_order(api, receiver, key):
    api.tags = ["assay-order:" + ORDER_KEY]
    assert receiver(key) == 1


def test_without_an_address_nothing_is_started():
    with temporary_settings(restore_defaults={PREFECT_API_URL}):
        waker = Waker(patience_seconds=5)
        with pytest.raises(ConfigurationError, match="PREFECT_API_URL"):
            asyncio.run(waker("e-1"))
        waker.close()
