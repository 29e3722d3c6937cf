import pytest

from assay_lab.testing import LocalLab
from support.services.x402_world import x402_world


@pytest.fixture(scope="session")
def running_lab():
    """A lab in a process of its own, over HTTP; tests share it and order invoices of their own."""
    with LocalLab() as lab:
        yield lab


@pytest.fixture
def lab(running_lab):
    """The shared lab, with no fault asked for."""
    running_lab.clear_faults()
    running_lab.end_payment_faults()
    return running_lab


@pytest.fixture
def world():
    """A service, a wallet and an unpaid order."""
    with x402_world() as made:
        yield made
