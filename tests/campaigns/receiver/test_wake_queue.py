"""The queue before the wake-ups: who gives up leaves it, and who has begun is never cut short."""

import asyncio

import pytest

from prefect_assay.campaigns.receiver.wake_queue import RetryLater, WakeQueue


def test_a_canceled_request_leaves_the_queue_and_a_running_wake_up_goes_on():
    async def story():
        queue, done, hold = WakeQueue(10, 10), [], asyncio.Event()

        async def work(name):
            await hold.wait()
            done.append(name)

        def taking(name):
            return asyncio.create_task(queue.run(lambda: work(name), seconds=5))

        first, second, third = [taking(name) for name in ("first", "second", "third")]
        await asyncio.sleep(0.01)
        assert queue.waiting == 2
        first.cancel()
        second.cancel()
        await asyncio.sleep(0.01)
        assert queue.waiting == 1
        assert not third.done()
        hold.set()
        await third
        assert done == ["first", "third"]

    asyncio.run(story())


@pytest.mark.parametrize("error", [TimeoutError, ConnectionError])
def test_what_the_work_raises_is_passed_on_and_the_turn_given_back(error):
    async def story():
        queue = WakeQueue(1, 1)

        async def fail():
            raise error

        async def work():
            return "done"

        with pytest.raises(error):
            await queue.run(fail, seconds=5)
        assert await queue.run(work, seconds=5) == "done"

    asyncio.run(story())


def test_reasons():
    async def story():
        queue, hold = WakeQueue(1, 1), asyncio.Event()
        work = asyncio.create_task(queue.run(hold.wait, seconds=5))
        await asyncio.sleep(0)
        waits = asyncio.create_task(queue.run(hold.wait, seconds=0.05))
        await asyncio.sleep(0.01)
        with pytest.raises(RetryLater) as full:
            await queue.run(hold.wait, seconds=5)
        with pytest.raises(RetryLater) as late:
            await waits
        hold.set()
        await work
        hold.clear()
        with pytest.raises(RetryLater) as slow:
            await queue.run(hold.wait, seconds=0.05)
        assert [caught.value.reason for caught in (full, late, slow)] == ["overload", "no_turn", "slow_wake"]
        assert {caught.value.status_code for caught in (full, late, slow)} == {503}

    asyncio.run(story())


def test_an_order_has_its_share_of_the_queue_and_nothing_is_kept_of_those_that_left():
    async def story():
        queue, hold = WakeQueue(10, 2), asyncio.Event()

        def taking(order_key):
            return asyncio.create_task(queue.run(hold.wait, seconds=5, order_key=order_key))

        tasks = [taking("working"), *(taking(key) for key in ("a", "a", "b", None, None, None))]
        await asyncio.sleep(0)
        for key, reason in (("a", "order_overload"), ("b", None), (None, None)):
            late = taking(key)
            await asyncio.sleep(0)
            if reason is None:
                tasks.append(late)
                continue
            with pytest.raises(RetryLater) as refused:
                await late
            assert (refused.value.reason, refused.value.status_code) == (reason, 503)
        hold.set()
        await asyncio.gather(*tasks)
        assert queue.waiting == 0
        assert not queue._waiting_of
        assert await queue.run(hold.wait, seconds=5, order_key="a")

    asyncio.run(story())
