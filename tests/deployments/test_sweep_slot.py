"""A slot of the sweep that nothing holds is freed by Prefect's API; one of a sweep that runs is not."""

from datetime import UTC, datetime, timedelta

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import GlobalConcurrencyLimitUpdate
from prefect.states import Pending, Running, Scheduled

from prefect_assay.deployments.sweep_slot import SWEEP, free_lost_slot

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def client():
    from prefect.testing.utilities import prefect_test_harness  # imports Prefect's server: not at collection

    with prefect_test_harness(server_startup_timeout=180), get_client(sync_client=True) as made:
        yield made


def test_a_lost_slot_is_freed_and_a_held_one_is_not(client):
    now = datetime.now(UTC)
    assert not free_lost_slot(client, now)  # no deployment
    flow, name = SWEEP.split("/")
    flow_id = client.create_flow_from_name(flow)
    sweep = client.create_deployment(flow_id, name, concurrency_limit=1)
    limit = client.read_deployment(sweep).global_concurrency_limit

    def take():
        client.update_global_concurrency_limit(limit.name, GlobalConcurrencyLimitUpdate(active_slots=1))

    def taken():
        return client.read_deployment(sweep).global_concurrency_limit.active_slots

    assert not free_lost_slot(client, now)  # not taken
    take()
    client.create_flow_run_from_deployment(sweep, state=Scheduled(scheduled_time=now + timedelta(hours=1)))
    assert free_lost_slot(client, now)
    assert taken() == 0
    for state in (Pending(), Running()):
        run = client.create_flow_run_from_deployment(sweep)
        client.set_flow_run_state(run.id, state, force=True)
        take()
        assert not free_lost_slot(client, datetime.now(UTC))
        assert taken() == 1
    assert free_lost_slot(client, datetime.now(UTC) + timedelta(minutes=11))  # its process is dead
    assert taken() == 0
