import logging

import pytest

from support.client import CANARY, Caller
from support.services.fault_server import fault_server


@pytest.fixture
def server():
    with fault_server() as running:
        yield running


@pytest.fixture
def call(server):
    """Calls on a server that can fail."""
    return Caller(server.base_url)


@pytest.fixture(autouse=True)
def no_token_in_the_logs(caplog):
    """Whatever a test does, nothing that is logged shows the token."""
    caplog.set_level(logging.DEBUG)
    yield
    assert CANARY not in caplog.text
