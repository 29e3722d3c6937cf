"""Fuzzing for as long as it is asked, by `make fuzz`; `make test` leaves this folder out.

`ASSAY_FUZZ_MINUTES` is the time of the whole run. Every selected test gets a share of it, and ends by itself when
its share is used up. `@pytest.mark.fuzz(weight=4)` asks for a share four times as large.
"""

import os
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_SECONDS = float(os.environ.get("ASSAY_FUZZ_MINUTES", "10")) * 60
# What a test may need beyond its share: the last batch of examples, and shrinking what it found.
_GRACE_SECONDS = 600.0


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.fuzz)
            item.add_marker(pytest.mark.timeout(_SECONDS + _GRACE_SECONDS))


@pytest.fixture
def share(request) -> float:
    """Seconds this test may take."""
    fuzzers = [item for item in request.session.items if item.path.is_relative_to(_HERE)]
    return _SECONDS * _weight(request.node) / sum(map(_weight, fuzzers))


def _weight(item) -> float:
    return max(mark.kwargs.get("weight", 1) for mark in item.iter_markers("fuzz"))
