"""The rate that an operator sets for requests to the service: a global concurrency limit of a real Prefect server."""

from collections import Counter
from itertools import pairwise

import pytest
from prefect import flow, task
from prefect.client.schemas.actions import GlobalConcurrencyLimitCreate

from prefect_assay.blocks import request_rate
from support.counting import counted_requests

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

TURN = "POST /api/v2/concurrency_limits/increment"
READING = "GET /api/v1/whoami"
LOOK = f"GET /api/v2/concurrency_limits/{request_rate.RATE_LIMIT}"


@pytest.fixture
def requests_of(world):
    """How often a run of five looks, in the flow and in tasks, asks Prefect and the service for what."""

    @task
    def look():
        with world.credentials.get_client() as client:
            client.tokens.whoami()

    @flow
    def looks():
        for _ in range(4):
            look()
        look.fn()

    def count():
        request_rate._has_rate_limit.cache.clear()  # remembered for a minute
        with counted_requests() as made:
            looks()
        return made

    yield count
    request_rate._has_rate_limit.cache.clear()


@pytest.fixture
def limit(world):
    made = []

    def create(**values):
        made.append(
            world.api.create_global_concurrency_limit(
                GlobalConcurrencyLimitCreate(name=request_rate.RATE_LIMIT, **values)
            )
        )

    yield create
    for _ in made:
        world.api.delete_global_concurrency_limit_by_name(request_rate.RATE_LIMIT)


def test_without_a_limit_prefect_is_asked_once(requests_of, caplog):
    made = Counter(requests_of())
    assert (made[READING], made[LOOK], made[TURN]) == (5, 1, 0)
    assert "oncurrency" not in caplog.text


def test_every_request_has_a_turn_of_its_own(requests_of, limit):
    """How often there is one is Prefect's to say: it answers 423 until then."""
    limit(limit=1, slot_decay_per_second=2.0)
    order = [made for made in requests_of() if made in {TURN, READING}]
    assert order.count(READING) == 5
    assert [before for before, request in pairwise(order) if request == READING] == [TURN] * 5


@pytest.mark.parametrize(
    "values", [{"limit": 1}, {"limit": 1, "slot_decay_per_second": 0.01, "active": False}]
)
def test_a_limit_that_sets_no_rate_holds_nothing_up(requests_of, limit, values):
    limit(**values)
    assert TURN not in requests_of()
