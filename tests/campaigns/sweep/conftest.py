"""A real Prefect server for the tests of this folder, and a home on it for each test."""

import pytest
from prefect.client.orchestration import get_client
from prefect.events.worker import EventsWorker
from prefect.testing.utilities import prefect_test_harness

from support.runs.sweeps import SweptHome


@pytest.fixture(scope="session")
def api():
    with prefect_test_harness(server_startup_timeout=120), get_client(sync_client=True) as client:
        yield client
        # Else the harness waits without end for events that another server of this process was to get.
        EventsWorker.drain_all(timeout=10)


@pytest.fixture
def home(api, tmp_path):
    made = SweptHome(api, tmp_path)
    yield made
    made.close()
