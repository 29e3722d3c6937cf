"""One lab process for the tests that ask a real service."""

import pytest

from prefect_assay.client import AssayClient
from prefect_assay.lab.testing import LocalLab


@pytest.fixture(scope="session")
def service():
    with LocalLab() as lab, AssayClient(lab.base_url, lab.token) as client:
        yield client
