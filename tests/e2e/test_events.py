"""Each fact is one event on a real server, fired by real runs, also after kills and resumes."""

import pytest

from support.runs.events import names, of_campaign
from support.runs.world import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

BINDER = "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR"


def test_a_paid_experiment_reports_each_fact_once(world):
    run = world.experiment("events-once", BINDER)
    world.asleep(run)

    def ordered():
        found = names(of_campaign("events-once"))
        return found if found["assay.experiment.paid"] else None

    eventually(ordered, seconds=10, what="the events of the suspended run")
    world.advance(days=16)
    world.until(run, "Completed", seconds=90)

    def done():
        found = of_campaign("events-once")
        return found if names(found)["assay.experiment.results-ready"] else None

    events = eventually(done, seconds=10, what="the events of the finished run")
    assert names(events) == {
        "assay.estimate.completed": 1,
        "assay.experiment.ordered": 1,
        "assay.experiment.invoiced": 1,
        "assay.experiment.paid": 1,
        "assay.experiment.stage-changed": 2,
        "assay.experiment.archived": 1,
        "assay.experiment.results-ready": 1,
    }
    assert len({event.id for event in events}) == len(events)
    deployment = f"prefect.deployment.{world.run(run).deployment_id}"
    for event in events:
        roles = event.roles()
        assert roles["flow-run"] == f"prefect.flow-run.{run.id}"
        assert (roles["deployment"], roles["campaign"]) == (deployment, "assay.campaign.events-once")
