"""Every answer of a lab in the test process is checked against the lab's own description."""

import pytest

from prefect_assay.lab.service.core import LabCore
from support.lab.conformance import conforming


@pytest.fixture(autouse=True, scope="session")
def answers_as_described():
    patch = pytest.MonkeyPatch()
    patch.setattr(LabCore, "perform", conforming(LabCore.perform))
    yield
    patch.undo()
