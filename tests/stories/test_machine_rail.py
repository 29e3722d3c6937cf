"""A campaign from Prefect's form to the report, paid by machine, and visible as one run with the tasks of the plugin.

The quotes come after a day. Between its executions the run is suspended, and signed webhooks wake it.
"""

from itertools import cycle

import httpx
import pytest
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

from prefect_assay.archive.read import read_latest
from prefect_assay.service.assays import BINDING_TYPES
from prefect_assay.service.models.vocabulary import ExperimentType, PaymentMethod
from support.runs.world import EGFR, UNPRICED
from support.stories.judge import judge
from support.stories.world import AFFINITY

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

TASKS = (
    "estimate-cost",
    "order-experiment",
    "poll-quote",
    "pay-invoice",
    "retrieve-results",
    "archive-experiment",
)


def submit_form(campaign):
    """Start the campaign with parameters as the UI posts them."""
    world = campaign.world
    deployment = world.api.read_deployment_by_name("campaign/assay-campaign")
    posted = httpx.post(
        f"{world.stack.api_url}/deployments/{deployment.id}/create_flow_run",
        json={"parameters": campaign.parameters(), "enforce_parameter_schema": True, "state": None},
    )
    assert posted.status_code == 201, posted.text
    return world.api.read_flow_run(posted.json()["id"])


@pytest.mark.parametrize("rail", ["x402-exact", "mpp-spt"])
def test_from_the_form_to_the_report(world, rail):
    with world.story(
        f"form-{rail}", rail=rail, options={"assay": {**AFFINITY, "target": UNPRICED}}
    ) as campaign:
        run = campaign.suspended(submit_form(campaign))
        assert not campaign.asks(run)
        assert campaign.settlements() == []

        campaign.pass_days(2)  # the run accepts the quotes, which are within the caps, and pays the invoices
        world.until(lambda: len(campaign.settlements()) == campaign.experiments, "the payment of both quotes")
        assert campaign.finish().id == run.id

        assert [one.id for one in campaign.runs()] == [run.id]
        assert world.read(run).state.is_completed()
        assert {delivery["status"] for delivery in campaign.lab.deliveries()} == {200}
        of_run = FlowRunFilter(id=FlowRunFilterId(any_=[run.id]))
        tasks = [task.name for task in world.api.read_task_runs(flow_run_filter=of_run)]
        assert [name for name in TASKS if not any(task.startswith(name) for task in tasks)] == [], tasks
        assert campaign.state.over.complete
        assert campaign.state.over.report
        assert judge(campaign) == []


TYPES = list(zip(ExperimentType, cycle(PaymentMethod), strict=False))
# epitope_binning takes at least four designs.
FOUR_DESIGNS = {name: f"MKTAYIAKQR{name * 3}" for name in "ACDE"}


@pytest.mark.long
@pytest.mark.parametrize(("kind", "rail"), TYPES)
def test_every_type_of_assay(world, kind, rail):
    """Each by its route: binding assays have prices, the others are quoted."""
    assay = {"experiment_type": kind.value, "target": EGFR if kind in BINDING_TYPES else None}
    options = {"assay": assay, "designs_per_experiment": len(FOUR_DESIGNS)}
    name = f"type-{kind.value}".replace("_", "-")
    with world.story(name, rail=rail.value, designs=FOUR_DESIGNS, options=options) as campaign:
        campaign.start_and_wait()
        campaign.pass_days(2)
        if rail is PaymentMethod.ASYNC_INVOICE:
            campaign.pay_invoices()
        campaign.finish()
        quoted = campaign.requests("POST", "/experiments/*/quote/confirm")
        assert bool(quoted) == (kind not in BINDING_TYPES)
        (order,) = campaign.orders()
        archived = read_latest(campaign.store, campaign.archive.prefix, campaign.name, order["code"])
        assert archived.manifest.results_status == "all"
        assert judge(campaign) == []
