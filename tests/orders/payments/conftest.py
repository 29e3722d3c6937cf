import pytest

from assay_lab.testing import LocalLab
from lab_support.core import lab_core
from support.lab.pay import MPP, X402, PayWorld


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


@pytest.fixture(scope="module")
def core():
    """A lab in this process; each world has an invoice of its own there."""
    core = lab_core()
    yield core
    core.close()


@pytest.fixture(params=[X402, MPP])
def world(core, request):
    """An unpaid order, once for each rail."""
    return PayWorld(core, request.param)


@pytest.fixture
def x402(core):
    return PayWorld(core, X402)


@pytest.fixture
def mpp(core):
    return PayWorld(core, MPP)
