"""Locks outlive neither the process that holds them nor a server that has forgotten them."""

import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from contextvars import copy_context

import httpx
import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import GlobalConcurrencyLimitCreate
from prefect.concurrency.services import ConcurrencySlotAcquisitionWithLeaseService
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from prefect_assay.cli.ports import HOST, free_ports
from prefect_assay.cli.processes import Child
from prefect_assay.cli.settings_files import SQLITE, settings_of
from prefect_assay.cli.stack_env import stack_environment
from prefect_assay.deployments.advice import advice
from prefect_assay.tasks import locks
from prefect_assay.tasks.ledger import PAYMENT_LIMIT, VariableStore
from prefect_assay.tasks.order import one_create_at_a_time

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

LEASES = "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE"
IN_MEMORY = {LEASES: "prefect.server.concurrency.lease_storage.memory"}  # what Prefect does if nothing is set


HOLDER = """
import os, signal, sys
from prefect_assay.tasks.locks import held
taken = [held(name, trace=lambda: None) for name in sys.argv[1:]]
for lock in taken:
    lock.__enter__()
os.kill(os.getpid(), signal.SIGKILL)
"""


class Server:
    """A Prefect server on SQLite that can be killed."""

    def __init__(self, folder, settings):
        (self.port,) = free_ports(1)
        self.api_url = f"http://{HOST}:{self.port}/api"
        self._folder = folder
        self.env = stack_environment(folder, self.api_url, settings)
        del self.env["PREFECT_API_URL"]

    def start(self):
        command = [
            sys.executable,
            "-m",
            "prefect",
            "server",
            "start",
            "--host",
            HOST,
            "--port",
            str(self.port),
        ]
        log = self._folder / "server.log"
        self._child = Child("server", command, env=self.env, cwd=self._folder, log=log)
        self._child.wait_until(self._answers, seconds=120)

    def kill(self):
        self._child.kill()

    def stop(self):
        self._child.stop()

    def _answers(self):
        with suppress(httpx.HTTPError):
            return httpx.get(f"{self.api_url}/health", timeout=5, trust_env=False).is_success
        return False


@contextmanager
def running(folder, settings):
    """The only server this process asks for slots: Prefect keeps a client for each limit, of whatever server it met."""
    server = Server(folder, settings)
    server.start()
    ConcurrencySlotAcquisitionWithLeaseService.drain_all()
    try:
        with temporary_settings({PREFECT_API_URL: server.api_url}):
            yield server
    finally:
        ConcurrencySlotAcquisitionWithLeaseService.drain_all()
        server.stop()


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory):
    with running(tmp_path_factory.mktemp("forgetful"), IN_MEMORY) as server:
        make_limit(PAYMENT_LIMIT)
        yield server


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setattr(locks, "_SOON_SECONDS", 0.5)
    monkeypatch.setattr(locks, "PATIENCE_SECONDS", 4.0)


def make_limit(name):
    with get_client(sync_client=True) as client:
        client.create_global_concurrency_limit(GlobalConcurrencyLimitCreate(name=name, limit=1))


def taken(name):
    with get_client(sync_client=True) as client:
        return client.read_global_concurrency_limit_by_name(name).active_slots


def advised():
    with get_client(sync_client=True) as client:
        return advice(client)


def freed(name):
    with get_client(sync_client=True) as client:
        return client.read_variable_by_name(f"assay_freed_{name}_1") is not None


def held_by_a_process_that_dies(server, *names):
    """A process of its own that takes the slots, and is gone."""
    done = subprocess.run(
        [sys.executable, "-c", HOLDER, *names],
        env=server.env | {"PREFECT_API_URL": server.api_url},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert [taken(name) for name in names] == [1] * len(names)


def test_a_slot_that_a_restarted_server_has_forgotten_is_freed(forgetful, hurried):
    order_lock = "assay-order-00112233445566778899"
    make_limit(order_lock)
    held_by_a_process_that_dies(forgetful, PAYMENT_LIMIT, order_lock)
    forgetful.kill()
    forgetful.start()
    assert (taken(PAYMENT_LIMIT), taken(order_lock)) == (1, 1)  # by nobody, and for ever
    assert ["LEASE_STORAGE" in sentence for sentence in advised()] == [True]
    with VariableStore("locks_").locked():
        assert taken(PAYMENT_LIMIT) == 1
    assert freed(PAYMENT_LIMIT)
    with one_create_at_a_time("00112233445566778899"):
        assert taken(order_lock) == 1
    assert freed(order_lock)


def test_nobody_is_freed_who_works_and_many_that_wait_go_one_by_one(forgetful, hurried):
    """The first holds for longer than anybody's patience, and writes; then the server forgets the slot."""
    name, store = PAYMENT_LIMIT, VariableStore("locks_many_")
    inside, order = threading.Lock(), []

    def wait_for_it(number):
        with store.locked():
            assert inside.acquire(blocking=False), "two at once"
            store.create(f"by{number}", "1")
            order.append(number)
            time.sleep(0.3)
            inside.release()

    waiters = [threading.Thread(target=copy_context().run, args=(wait_for_it, n)) for n in range(3)]
    with store.locked():
        store.create("first", "0")
        for waiter in waiters:
            waiter.start()
        for step in range(14):  # 7 s, a write each half a second
            store.replace("first", str(step))
            time.sleep(0.5)
        assert order == []
        assert taken(name) == 1
    for waiter in waiters:
        waiter.join(60)
    assert sorted(order) == [0, 1, 2]


def test_an_orders_lock_is_kept_by_one_who_waits_for_the_payment_lock(forgetful, hurried):
    """As long as anybody orders or pays anywhere: who waits in that queue holds the order's lock, and lives."""
    key, store, entered = "11112222333344445555", VariableStore("locks_queue_"), threading.Event()
    store.create("others", "0")

    def wait_for_it():
        with one_create_at_a_time(key):
            entered.set()

    waiter = threading.Thread(target=copy_context().run, args=(wait_for_it,))
    with one_create_at_a_time(key):
        waiter.start()
        for step in range(40):  # 20 s; the patience for this lock is 16
            store.replace("others", str(step))
            time.sleep(0.5)
        assert not entered.is_set()
        assert not freed(f"assay-order-{key}")
    waiter.join(60)
    assert entered.is_set()


@pytest.mark.parametrize("error", [None, LookupError])
def test_what_was_done_under_a_lock_stands_when_the_server_goes_away(forgetful, hurried, error):
    """An order that is placed must not look like one that failed because its lock could not be given back."""
    key = "99887766554433221100" if error else "00998877665544332211"

    def order():
        with one_create_at_a_time(key), VariableStore("locks_away_").locked():
            forgetful.kill()
            if error:
                raise error
        return "ordered"

    with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0}):
        if error:
            with pytest.raises(error):
                order()
        else:
            assert order() == "ordered"
    forgetful.start()


def test_with_the_shipped_settings_a_slot_comes_back_after_a_restart(tmp_path):
    assert LEASES in settings_of(SQLITE)
    with running(tmp_path, {}) as server:
        make_limit(PAYMENT_LIMIT)
        held_by_a_process_that_dies(server, PAYMENT_LIMIT)
        assert advised() == ()
        server.kill()
        server.start()
        end = time.monotonic() + 150
        while taken(PAYMENT_LIMIT):
            assert time.monotonic() < end, "the lease has not ended"
            time.sleep(1)
        assert not freed(PAYMENT_LIMIT)
