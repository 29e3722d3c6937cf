"""Clocks while requests run, and one that runs by itself: its thread wakes up for what changes or falls due only."""

import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from assay_lab.kernel import schedule
from lab_support.core import EPOCH, advance, get, lab_core, order, spec
from lab_support.sim_client import served

REAL_TIME = {"clock_mode": "scaled", "seconds_per_day": 86_400}


@pytest.fixture
def rounds():
    """The lab with a running clock, and a queue that gets an entry whenever its clock's thread goes to sleep."""
    core = lab_core(**REAL_TIME)
    slept = queue.Queue()
    sleep = core.lab.wait

    def wait(seen, seconds):
        if threading.current_thread().name == "lab-clock-driver":
            slept.put(seconds)
        sleep(seen, seconds)

    core.lab.wait = wait
    core.start()
    slept.get(timeout=10)
    yield core, slept
    core.close()


@pytest.mark.parametrize("ordered", [0, 3])
def test_a_look_that_finds_nothing_due_wakes_nobody(rounds, ordered):
    core, slept = rounds
    for _ in range(ordered):
        order(core, skip_draft=True)
        slept.get(timeout=10)
    core.clock_driver._workers.join(10)
    before = core.lab.changes
    for told in range(1, 6):
        core.lab.changed()
        slept.get(timeout=10)
        core.clock_driver._workers.join(10)  # what it does in its own thread is done
        assert core.lab.changes == before + told


def test_what_a_running_clock_does_is_told(rounds):
    core, slept = rounds
    experiment_id = order(core, skip_draft=True).body["experiment_id"]
    slept.get(timeout=10)
    core.clock_driver._workers.join(10)
    with core.lab.store.transaction() as db:
        schedule.put_off(db, schedule.find_queued(db, experiment_id, "quote_ready"), EPOCH)
    before = core.lab.changes
    core.lab.changed()
    slept.get(timeout=10)
    core.clock_driver._workers.join(10)
    assert get(core, f"/experiments/{experiment_id}")["status"] == "quote_sent"
    assert core.lab.changes == before + 2


def test_the_clock_advances_while_requests_run(core):
    with ThreadPoolExecutor(4) as pool:
        orders = [
            pool.submit(order, core, spec(sequences={"a": "MKV"}), auto_accept_quote=True) for _ in range(60)
        ]
        for _ in range(20):
            advance(core, days=1)
        assert {one.result().status for one in orders} == {201}
    advance(core, days=16)
    assert get(core, "/experiments", status="done")["total"] == 60


def until(check):
    end = time.monotonic() + 20
    while not check():
        assert time.monotonic() < end, "the clock does not run"
        threading.Event().wait(0.01)


def test_running_clocks_outlive_a_reset_and_leave_a_quote_to_its_person():
    def status(experiment_id):
        return lab.api("GET", f"/experiments/{experiment_id}").json()["status"]

    def ordered():
        return lab.order(auto_accept_quote=True).json()["experiment_id"]

    with served(clock_mode="auto") as lab:
        lab.core.start()
        ordered()
        lab.core.reset()
        assert get(lab.core, "/experiments")["total"] == 0
        quoted, done = lab.order(skip_draft=True).json()["experiment_id"], ordered()
        until(lambda: (status(quoted), status(done)) == ("quote_sent", "done"))
        other = ordered()  # the clock jumps for others; the quote does not expire
        until(lambda: status(other) == "done")
        assert status(quoted) == "quote_sent"
        lab.sim("POST", "/clock/mode", json={"mode": "scaled", "seconds_per_day": 0.02})
        scaled = ordered()
        until(lambda: status(scaled) == "done")
