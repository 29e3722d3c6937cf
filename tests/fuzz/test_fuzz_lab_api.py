"""The API of a lab in its own process, over HTTP, with whatever schemathesis can think of."""

import itertools
import random
import time

import pytest
from hypothesis import HealthCheck, Phase, settings

from assay_lab.api import ROUTES, operation_id
from assay_lab.testing import LocalLab
from lab_support.states import inhabit_lab

NAMES = [operation_id(route) for route in ROUTES]
FEW = settings(
    max_examples=30,
    derandomize=False,
    database=None,
    print_blob=True,
    phases=(Phase.generate, Phase.target, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def lab():
    with LocalLab() as running:
        running.webhook_fault("drop", probability=1.0)  # made-up addresses are not to be called
        yield running


@pytest.fixture
def probe(lab):
    from lab_support.schema_probe import Probe

    numbers = itertools.count()
    made = Probe(
        inhabit_lab(lab),
        base_url=lab.base_url,
        token=lab.partner_token,
        fresh_token=lambda: lab.seed(f"revoked{next(numbers)}").token,
    )
    yield made
    made.close()


@pytest.mark.fuzz(weight=4)
def test_fuzz_every_call(probe, share):
    end = time.monotonic() + share
    for name in random.sample(NAMES, len(NAMES)):
        probe.systematic(name, whole=10_000)
        if time.monotonic() > end:
            return
    while time.monotonic() < end:
        probe.random(random.choice(NAMES), FEW)


@pytest.mark.fuzz(weight=4)
def test_fuzz_walks_from_call_to_call(lab, probe, share):
    problems = probe.walk(lab.base_url, share)
    assert not problems, "\n\n".join(problems)
