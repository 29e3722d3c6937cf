"""Every answer of a lab in the test process is checked against the lab's own description."""

import functools
import os
import ssl
import time

import pytest
from hypothesis import settings

from assay_lab.service.core import LabCore
from lab_support.conformance import conforming
from lab_support.fixtures import client, core, hook, lab, other, shared, started

__all__ = ["client", "core", "hook", "lab", "other", "shared", "started"]

# httpx reads the certificates again for each client, also where an address is plain HTTP.
ssl.create_default_context = functools.cache(ssl.create_default_context)

# Hypothesis's limit of 200 ms an example is one of the wall clock, which a busy machine passes.
settings.register_profile("assay-lab", deadline=None)
settings.load_profile("assay-lab")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    if time.time() > float(os.environ.get("ASSAY_TESTS_END", "inf")):
        pytest.skip("no time was left for it (ASSAY_TESTS_END)")


@pytest.fixture(autouse=True, scope="session")
def answers_as_described():
    patch = pytest.MonkeyPatch()
    patch.setattr(LabCore, "perform", conforming(LabCore.perform))
    yield
    patch.undo()
