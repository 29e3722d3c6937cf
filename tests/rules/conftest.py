"""One lab process for all rules, and a fresh organization for every test."""

import pytest

from assay_lab.testing import LocalLab
from support.lab.organisations import organisation

DEPLOYMENT_SECRET = "deployment-secret-" * 2


@pytest.fixture(scope="session")
def lab():
    with LocalLab(deployment_secret=DEPLOYMENT_SECRET) as running:
        yield running


@pytest.fixture
def org(lab):
    with organisation(lab) as made:
        yield made


@pytest.fixture
def stranger(lab):
    with organisation(lab) as made:
        yield made


@pytest.fixture(scope="module")
def shared(lab):
    """One organization for tests that leave nothing behind, because all they send is refused."""
    with organisation(lab) as made:
        yield made
