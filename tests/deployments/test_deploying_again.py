"""What deploying again keeps of operators' changes: pure rules on Prefect's own models."""

from typing import Any
from uuid import uuid4

import pytest
from prefect.client.schemas.responses import DeploymentResponse
from prefect.exceptions import ObjectNotFound

from prefect_assay.deployments.setup import (
    keep_schedules_and_pauses,
    operators_choices,
    register_cancellation_automation,
    shipped_deployments,
)
from prefect_assay.deployments.work_pool import PROCESS, SWEEP_QUEUE, WORK_POOL, worker_commands


def deployment(**fields: Any) -> DeploymentResponse:
    limit = fields.pop("limit", None)
    if limit is not None:
        fields["global_concurrency_limit"] = {
            "id": str(uuid4()),
            "name": "deployment",
            "limit": limit,
            "active": True,
            "active_slots": 0,
            "slot_decay_per_second": 0.0,
        }
    return DeploymentResponse.model_validate(
        {"id": str(uuid4()), "flow_id": str(uuid4()), "name": "assay-campaign"} | fields
    )


def entry(content, flow):
    (item,) = (e for e in content["deployments"] if e["entrypoint"].endswith(f":{flow}"))
    return item


def test_a_new_deployment_is_as_shipped():
    assert keep_schedules_and_pauses(shipped_deployments(), {}) == shipped_deployments()


@pytest.mark.parametrize("paused", [True, False])
def test_schedules_and_pause_of_an_existing_deployment_are_left_alone(paused):
    there = {"sweep/assay-sweep": deployment(paused=paused)}
    content = keep_schedules_and_pauses(shipped_deployments(), there)
    assert "schedules" not in entry(content, "sweep")
    assert entry(content, "sweep")["paused"] is paused
    assert entry(content, "campaign") == entry(shipped_deployments(), "campaign")


def test_names_are_those_of_the_flows():
    there = {"design-build-test/assay-design-build-test": deployment(paused=True)}
    assert entry(keep_schedules_and_pauses(shipped_deployments(), there), "design_build_test")["paused"]


def test_the_sweep_never_queues_behind_itself():
    assert entry(shipped_deployments(), "sweep")["concurrency_limit"] == {
        "limit": 1,
        "collision_strategy": "CANCEL_NEW",
    }


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {}, {}),
        ({"job_variables": {"env": {"A": "1"}}}, {}, {"job_variables": {"env": {"A": "1"}}}),
        ({"job_variables": {"env": {"A": "1"}}}, {"job_variables": {"env": {"A": "1"}}}, {}),
        ({"parameters": {"deadline_days": 60}}, {}, {"parameters": {"deadline_days": 60}}),
        ({"limit": 20}, {}, {"concurrency_limit": 20}),
        ({"limit": 2}, {"limit": 1}, {"concurrency_limit": 2}),
        ({"limit": 1}, {"limit": 1}, {}),
        ({}, {"limit": 1}, {}),
    ],
)
def test_what_deploying_has_overwritten_is_restored(before, after, expected):
    assert operators_choices(deployment(**before), deployment(**after)) == expected


class Registering:
    """A server without `decide`, then with it."""

    def __init__(self):
        self.deployed, self.made = None, []

    def read_deployment_by_name(self, name):
        if self.deployed is None:
            raise ObjectNotFound(Exception())
        assert name == "decide/assay-decide"
        return self.deployed

    def read_automations_by_name(self, _name):
        return []

    def create_automation(self, automation):
        self.made.append(automation)


def test_the_automation_is_registered_once_its_deployment_exists():
    server = Registering()
    assert register_cancellation_automation(server) == ()
    (later,) = register_cancellation_automation(server, dry_run=True)
    assert (later.change, server.made) == ("created", [])
    server.deployed = deployment()
    (now,) = register_cancellation_automation(server)
    assert now.change == "created"
    assert server.made[0].actions[0].deployment_id == server.deployed.id


def test_decisions_do_not_wait_behind_runs_that_hang():
    assert entry(shipped_deployments(), "decide")["work_pool"]["work_queue_name"] == SWEEP_QUEUE
    commands = worker_commands(WORK_POOL, PROCESS)
    assert f"--work-queue {SWEEP_QUEUE} --limit 2" in commands[-1]
