"""Every answer of a lab in the test process is checked against the lab's own description."""

import pytest

from prefect_assay.lab.service.core import LabCore
from support.lab.conformance import conforming
from support.lab.core import lab_core
from support.lab.sim_client import served
from support.lab.tool_client import browser
from support.services.hook_server import hook_server


@pytest.fixture(autouse=True, scope="session")
def answers_as_described():
    patch = pytest.MonkeyPatch()
    patch.setattr(LabCore, "perform", conforming(LabCore.perform))
    yield
    patch.undo()


@pytest.fixture
def core():
    made = lab_core()
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared():
    made = lab_core()
    yield made
    made.close()


@pytest.fixture
def hook():
    with hook_server() as made:
        yield made


other = hook


@pytest.fixture(scope="module")
def started():
    with served() as running:
        yield running


@pytest.fixture
def lab(started):
    """A served lab of the module, emptied."""
    started.core.reset()
    return started


@pytest.fixture(scope="module")
def client(core):
    """A browser at a module's `core`."""
    with browser(core) as made:
        yield made
