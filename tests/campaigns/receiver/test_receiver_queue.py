"""Wake-ups one at a time: what waits, what gives up, and what is too much."""

import asyncio
import json
import uuid
from concurrent.futures import ThreadPoolExecutor

import httpx

from prefect_assay.service.webhook_signature import derive_secret
from support.webhooks.deliveries import ORDER_KEY, SIGNING_KEY, body_of, headers_of
from support.webhooks.receiver_place import metric, settings, until


def signed(body, key):
    return headers_of(body, derive_secret(SIGNING_KEY, key))


@settings(wake_timeout_seconds=0.2)
def test_a_wake_up_that_hangs_gets_503_and_never_overlaps_the_next(receiver):
    receiver.wake.held = True
    slow, behind = body_of(data_experiment_id="slow"), body_of(data_experiment_id="behind")
    assert [receiver.post(body).status_code for body in (slow, behind)] == [503, 503]
    assert receiver.wake.asked == ["slow"]
    receiver.wake.held = False
    assert receiver.post(behind).json() == {"resumed": 1}
    # What had begun went on, and its update is known; what gave up in the queue was not done behind its back.
    assert receiver.post(slow).json() == {"resumed": 0}
    assert receiver.wake.asked == ["slow", "behind"]
    assert receiver.wake.most_at_once == 1


@settings(max_waiting=2, wake_timeout_seconds=20)
def test_a_full_queue_gets_503_at_once_and_loses_no_delivery(receiver):
    receiver.wake.held = True
    with ThreadPoolExecutor(3) as senders:
        waiting = [senders.submit(receiver.post, body_of()) for _ in range(3)]
        until(lambda: metric(receiver, "assay_receiver_waiting") == 2)
        answer = receiver.post(body_of())
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
        receiver.wake.held = False
        assert {sent.result().status_code for sent in waiting} == {200}
    assert metric(receiver, "assay_receiver_deliveries_total", outcome="not_now", reason="overload") == 1


def test_a_burst_is_taken_one_by_one_and_none_is_lost(receiver):
    receiver.wake.seconds = 0.002
    keys = [uuid.uuid4().hex[:20] for _ in range(150)]
    bodies = [body_of() for _ in keys]
    sent = [*zip(keys, bodies, strict=True)]
    sent += sent[:50]  # and a quarter of it doubled

    async def burst():
        async with httpx.AsyncClient(timeout=30, limits=httpx.Limits(max_connections=200)) as client:
            return await asyncio.gather(
                *(
                    client.post(f"{receiver.url}/assay/{key}", content=body, headers=signed(body, key))
                    for key, body in sent
                )
            )

    answers = asyncio.run(burst())
    assert {answer.status_code for answer in answers} == {200}
    assert sum(answer.json()["resumed"] for answer in answers) == 150
    assert sorted(receiver.wake.asked) == sorted(json.loads(b)["data"]["experiment_id"] for b in bodies)
    assert receiver.wake.most_at_once == 1


@settings(max_waiting=20, wake_timeout_seconds=20)
def test_a_leaked_secret_does_not_keep_the_wake_ups_of_other_orders_out(receiver):
    """Its holder keeps 40 deliveries on their way, each with a new update, and each of them genuine by its signature."""
    receiver.wake.seconds = 0.01
    other = "f" * 20

    async def story():
        limits = httpx.Limits(max_connections=200)
        async with httpx.AsyncClient(base_url=receiver.url, timeout=30, limits=limits) as client:
            full, done = asyncio.Event(), asyncio.Event()

            async def flood():
                while not done.is_set():
                    body = body_of()
                    answer = await client.post(
                        f"/assay/{ORDER_KEY}", content=body, headers=signed(body, ORDER_KEY)
                    )
                    if answer.status_code == 503:  # it has as much of the queue as it gets
                        full.set()
                        await asyncio.sleep(0.02)

            floods = [asyncio.create_task(flood()) for _ in range(40)]
            await full.wait()
            answers = []
            for _ in range(5):
                body = body_of()
                answers.append(
                    await client.post(f"/assay/{other}", content=body, headers=signed(body, other))
                )
            done.set()
            await asyncio.gather(*floods)
            return answers

    answers = asyncio.run(story())
    assert [(answer.status_code, answer.json()) for answer in answers] == [(200, {"resumed": 1})] * 5
    assert metric(receiver, "assay_receiver_deliveries_total", outcome="not_now", reason="order_overload") > 0
    assert metric(receiver, "assay_receiver_deliveries_total", outcome="not_now", reason="overload") == 0


def test_the_address_of_an_organisation_has_the_whole_queue(receiver):
    """It gets the updates of all its experiments, many at a time."""
    receiver.wake.held = True
    key = "0" * 20
    with ThreadPoolExecutor(16) as senders:
        waiting = []
        for _ in range(16):
            body = body_of()
            waiting.append(senders.submit(receiver.post, body, signed(body, key), f"/assay/{key}"))
        until(lambda: metric(receiver, "assay_receiver_waiting") == 15)
        receiver.wake.held = False
        assert {sent.result().status_code for sent in waiting} == {200}
