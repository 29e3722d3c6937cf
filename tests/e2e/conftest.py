"""One installation per test process: starting one costs more than most tests. Campaign ids keep tests apart.

It ends with the last test of this folder (a package for that), since an idle installation slows all that follow.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import httpx
import pytest

from prefect_assay.flows import sweep
from support.runs.held import Held
from support.runs.world import a_world


@pytest.fixture(scope="package")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    modules = folder / "modules"  # where flows find a designer's module
    modules.mkdir()
    with a_world(folder, stack_options={"env": {"PYTHONPATH": str(modules)}}) as made:
        yield made


@pytest.fixture(scope="package")
def held(world):
    """Runs that a test executes itself."""
    return Held(world)


@pytest.fixture
def time_passes(world):
    """The laboratory works, a person pays, and sweeps run, while the test waits. The examples name no webhook."""
    ended = threading.Event()

    def go_on():
        while not ended.wait(2):
            for invoice in world.service.invoices.iterate():
                if invoice.status == "open":
                    httpx.post(
                        f"{invoice.provider_hosted_invoice_url.rstrip('/')}/pay", follow_redirects=True
                    )
            world.stack.lab.advance(until="idle")  # a quote does not expire while a busy machine reads it
            sweep(full_check_minutes=0)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(copy_context().run, go_on)
        yield
        ended.set()
        done.result()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Add how the runs stand, and the end of the served flows' log, to the report of a test that fails."""
    outcome = yield
    world = item.funcargs.get("world")
    if call.when == "call" and call.excinfo is not None and world is not None:
        outcome.get_result().sections.append(("how the runs stand", world.how_it_stands()))
