"""A laboratory for the commands that ask one, shared by the tests of a file."""

import pytest

from assay_lab.testing import LocalLab


@pytest.fixture(scope="module")
def lab():
    with LocalLab() as running:
        yield running
