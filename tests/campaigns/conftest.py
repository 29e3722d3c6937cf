"""A Prefect server of the process for the tests that need one, and a lab."""

import pytest
from prefect.client.orchestration import get_client
from prefect.events.worker import EventsWorker
from prefect.testing.utilities import prefect_test_harness

from assay_lab.testing import LocalLab


@pytest.fixture(scope="session")
def prefect():
    """A client of a real Prefect server."""
    with prefect_test_harness(server_startup_timeout=180), get_client(sync_client=True) as client:
        yield client
        # Else the harness waits without end for events that another server of this process was to get.
        EventsWorker.drain_all(timeout=10)


@pytest.fixture(scope="session")
def lab():
    """A lab whose quotes come after a minute of its clock."""
    with LocalLab() as made:
        made.plan(quote_minutes=1, review_minutes=1, window_days=0.01)
        yield made
