"""Fixtures with labs in the test's own process, and a webhook receiver; a conftest imports those that it offers."""

import pytest

from lab_support.core import lab_core
from lab_support.hook_server import hook_server
from lab_support.sim_client import served
from lab_support.tool_client import browser


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
