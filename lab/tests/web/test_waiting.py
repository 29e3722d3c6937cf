"""While something keeps the lab, requests wait and the web server goes on; afterwards each has its answer."""

import asyncio
import gc
import threading
import warnings
from contextlib import closing

import httpx
import pytest

from assay_lab.service.core import LabCore
from assay_lab.web.server import create_app

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(autouse=True)
def no_garbage():
    """What earlier tests left is collected now: a warning about it would fail a test of this file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


def test_requests_wait_and_the_event_loop_does_not():
    with closing(LabCore()) as core:
        inside, go_on = threading.Event(), threading.Event()

        def keep():
            with core.lab.store.transaction():
                inside.set()
                assert go_on.wait(20)

        keeper = threading.Thread(target=keep)
        keeper.start()
        assert inside.wait(20)
        asyncio.run(asked_meanwhile(core, go_on))
        keeper.join(20)


async def asked_meanwhile(core, go_on):
    transport = httpx.ASGITransport(create_app(core))
    headers = {"Authorization": f"Bearer {core.seeded.member_token}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as http:
        waiting = [asyncio.create_task(http.get("/api/v1/experiments")) for _ in range(10)]
        for _ in range(50):
            await asyncio.sleep(0.01)  # each of these is a turn of the loop that nobody holds up
        assert not any(task.done() for task in waiting)
        assert (await http.get("/api/v1/nowhere")).status_code == 404
        go_on.set()
        answers = await asyncio.wait_for(asyncio.gather(*waiting), 20)
    assert [answer.status_code for answer in answers] == [200] * 10
