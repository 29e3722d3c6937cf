"""The lab against its own description: every check of schemathesis, some cases per call (`make fuzz`: many)."""

import pytest
from hypothesis import HealthCheck, Phase, settings

from assay_lab.api import ROUTES, operation_id
from assay_lab.web.server import create_app
from lab_support.core import lab_core
from lab_support.states import inhabit_core

SAME_EVERY_TIME = settings(
    max_examples=3,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def probe():
    from lab_support.schema_probe import Probe

    core = lab_core()

    def fresh_token():
        with core.lab.store.transaction() as db:
            org_id = core.seeded.organization_id
            return core.lab.tokens.mint(db, org_id=org_id, role="member", name="to be revoked").token

    made = Probe(
        inhabit_core(core),
        app=create_app(core),
        token=core.seeded.partner_token,
        fresh_token=fresh_token,
    )
    yield made
    made.close()
    core.close()


@pytest.mark.parametrize("name", [operation_id(route) for route in ROUTES])
def test_the_lab_answers_as_it_describes(name, probe):
    assert probe.systematic(name, whole=16, every=40) > 3
    probe.random(name, SAME_EVERY_TIME)
