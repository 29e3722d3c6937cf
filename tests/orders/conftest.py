"""One lab process for the tests that ask a real service."""

import pytest

from assay_lab.testing import LocalLab
from prefect_assay.service.client import AssayClient


@pytest.fixture(scope="session")
def lab():
    with LocalLab() as made:
        yield made


@pytest.fixture(scope="session")
def service(lab):
    with AssayClient(lab.base_url, lab.token) as client:
        yield client
