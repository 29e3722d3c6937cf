"""Every test of the lab in the test's own process also holds its answers to the lab's own description."""

import pytest

from prefect_assay.lab.service.core import LabCore
from support.lab.conformance import held


@pytest.fixture(autouse=True, scope="session")
def answers_as_described():
    patch = pytest.MonkeyPatch()
    patch.setattr(LabCore, "perform", held(LabCore.perform))
    yield
    patch.undo()
