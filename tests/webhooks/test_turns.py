"""The queue before the wake-ups: who gives up leaves it, and who has begun is never cut short."""

import asyncio

import pytest

from prefect_assay.webhooks.answers import NotNow
from prefect_assay.webhooks.wake_queue import Turns


def test_who_is_canceled_while_it_waits_leaves_and_who_works_goes_on():
    async def story():
        turns, done, hold = Turns(10, 10), [], asyncio.Event()

        async def work(name):
            await hold.wait()
            done.append(name)

        def taking(name):
            return asyncio.create_task(turns.take(lambda: work(name), seconds=5))

        first, second, third = [taking(name) for name in ("first", "second", "third")]
        await asyncio.sleep(0.01)
        assert turns.waiting == 2
        first.cancel()
        second.cancel()
        await asyncio.sleep(0.01)
        assert turns.waiting == 1
        assert not third.done()
        hold.set()
        await third
        assert done == ["first", "third"]

    asyncio.run(story())


@pytest.mark.parametrize("error", [TimeoutError, ConnectionError])
def test_what_the_work_raises_is_passed_on_and_the_turn_given_back(error):
    async def story():
        turns = Turns(1, 1)

        async def fail():
            raise error

        async def work():
            return "done"

        with pytest.raises(error):
            await turns.take(fail, seconds=5)
        assert await turns.take(work, seconds=5) == "done"

    asyncio.run(story())


def test_reasons():
    async def story():
        turns, hold = Turns(1, 1), asyncio.Event()
        work = asyncio.create_task(turns.take(hold.wait, seconds=5))
        await asyncio.sleep(0)
        waits = asyncio.create_task(turns.take(hold.wait, seconds=0.05))
        await asyncio.sleep(0.01)
        with pytest.raises(NotNow) as full:
            await turns.take(hold.wait, seconds=5)
        with pytest.raises(NotNow) as late:
            await waits
        hold.set()
        await work
        hold.clear()
        with pytest.raises(NotNow) as slow:
            await turns.take(hold.wait, seconds=0.05)
        assert [caught.value.reason for caught in (full, late, slow)] == ["overload", "no_turn", "slow_wake"]
        assert {caught.value.status_code for caught in (full, late, slow)} == {503}

    asyncio.run(story())


def test_an_order_has_its_share_of_the_queue_and_nothing_is_kept_of_those_that_left():
    async def story():
        turns, hold = Turns(10, 2), asyncio.Event()

        def taking(order_key):
            return asyncio.create_task(turns.take(hold.wait, seconds=5, order_key=order_key))

        tasks = [taking("working"), *(taking(key) for key in ("a", "a", "b", None, None, None))]
        await asyncio.sleep(0)
        for key, reason in (("a", "order_overload"), ("b", None), (None, None)):
            late = taking(key)
            await asyncio.sleep(0)
            if reason is None:
                tasks.append(late)
                continue
            with pytest.raises(NotNow) as refused:
                await late
            assert (refused.value.reason, refused.value.status_code) == (reason, 503)
        hold.set()
        await asyncio.gather(*tasks)
        assert turns.waiting == 0
        assert not turns._waiting_of
        assert await turns.take(hold.wait, seconds=5, order_key="a")

    asyncio.run(story())
