"""Wake-ups one at a time: what waits, what gives up, and what is too much."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import httpx

from support.deliveries import body_of, headers_of
from support.receiver_place import PATH, SECRET, metric, settings, until


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
def test_a_full_queue_gets_503_at_once_and_nobody_in_it_is_lost(receiver):
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
    bodies = [body_of() for _ in range(150)]
    bodies += bodies[:50]  # and a quarter of it doubled

    async def burst():
        async with httpx.AsyncClient(timeout=30, limits=httpx.Limits(max_connections=200)) as client:
            return await asyncio.gather(
                *(client.post(receiver.url + PATH, content=b, headers=headers_of(b, SECRET)) for b in bodies)
            )

    answers = asyncio.run(burst())
    assert {answer.status_code for answer in answers} == {200}
    assert sum(answer.json()["resumed"] for answer in answers) == 150
    assert sorted(receiver.wake.asked) == sorted(json.loads(b)["data"]["experiment_id"] for b in bodies[:150])
    assert receiver.wake.most_at_once == 1
