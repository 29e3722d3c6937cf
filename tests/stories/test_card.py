"""The card: one campaign from the form to the report, visible as one flow run with the five tasks of the plugin."""

import httpx
import pytest
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

from support.runs.world import UNPRICED
from support.stories.judge import judge
from support.stories.world import AFFINITY

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

# Estimate, create, pay, poll the quote, retrieve the results; and keep them.
TASKS = {
    "estimate-cost",
    "order-experiment",
    "poll-quote",
    "pay-invoice",
    "retrieve-results",
    "archive-experiment",
}


def test_from_the_form_to_the_report(world):
    """Parameters as the UI posts them; the run waits suspended, and a signed webhook wakes it."""
    with world.story("the-card", options={"assay": {**AFFINITY, "target": UNPRICED}}) as campaign:
        deployment = world.api.read_deployment_by_name("campaign/assay-campaign")
        posted = httpx.post(
            f"{world.stack.api_url}/deployments/{deployment.id}/create_flow_run",
            json={"parameters": campaign.parameters(), "enforce_parameter_schema": True, "state": None},
        )
        assert posted.status_code == 201, posted.text
        run = campaign.suspended(world.api.read_flow_run(posted.json()["id"]))
        assert not campaign.asks(run)

        campaign.pass_days(2)  # the quotes come: their webhooks wake the run, which accepts and pays them
        world.until(lambda: len(campaign.settlements()) == campaign.experiments, "the payment of both quotes")
        assert campaign.finish().id == run.id
        delivered = campaign.lab.deliveries()
        assert {delivery["status"] for delivery in delivered} == {200}

        done = world.read(run)
        assert done.state.is_completed(), done.state
        assert [one.id for one in campaign.runs()] == [run.id]
        tasks = world.api.read_task_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[run.id])))
        names = {task.name for task in tasks}
        missing = {task for task in TASKS if not any(name.startswith(task) for name in names)}
        assert missing == set(), sorted(names)
        assert campaign.state.over.complete
        assert campaign.state.over.report
        assert judge(campaign) == []
