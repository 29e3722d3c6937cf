"""The receivers of tests/support/webhooks/receiver_place.py as fixtures."""

import pytest

from support.webhooks.receiver_place import running


@pytest.fixture(scope="module")
def usual():
    with running() as place:
        yield place


@pytest.fixture
def receiver(request):
    """A receiver with the settings of the test; tests without any share one, with its records cleared."""
    if hasattr(request, "param"):
        with running(**request.param) as place:
            yield place
    else:
        place = request.getfixturevalue("usual")
        place.wake.__init__()
        yield place
