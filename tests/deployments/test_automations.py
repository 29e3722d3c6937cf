"""The automation on Cancelled as a definition: which events it covers, judged by Prefect's own server code; and re-registering.

That it works on a real stack is shown in tests/stories.
"""

from datetime import UTC, datetime
from uuid import uuid4

import httpx
import pytest
from prefect.events.schemas.automations import Automation
from prefect.server.events.schemas.automations import AutomationCreate
from prefect.server.events.schemas.events import ReceivedEvent
from prefect.server.utilities.user_templates import render_user_template_sync
from prefect.utilities.callables import parameter_schema

from prefect_assay.campaigns.runs.queries import FLOW_NAMES
from prefect_assay.deployments.automations import CANCEL, make_cancellation_automation, register_automations
from prefect_assay.deployments.setup import shipped_deployments
from prefect_assay.flows import campaign, decide, design_build_test

DECIDE, ANOTHER = uuid4(), uuid4()


def event(name, flow="campaign", tag="assay"):
    return ReceivedEvent(
        occurred=datetime.now(UTC),
        event=f"prefect.flow-run.{name}",
        resource={"prefect.resource.id": f"prefect.flow-run.{uuid4()}"},
        related=[
            {
                "prefect.resource.id": "prefect.flow.1",
                "prefect.resource.role": "flow",
                "prefect.resource.name": flow,
            },
            {"prefect.resource.id": f"prefect.tag.{tag}", "prefect.resource.role": "tag"},
        ],
        payload={},
        id=uuid4(),
    )


def on_server(deployment=DECIDE):
    return AutomationCreate.model_validate(make_cancellation_automation(deployment).model_dump(mode="json"))


@pytest.mark.parametrize(
    ("changes", "covered"),
    [
        ({}, True),
        ({"flow": "design-build-test"}, True),
        ({"flow": "sweep"}, False),
        ({"flow": "decide"}, False),
        ({"flow": "somebody-elses"}, False),
        ({"tag": "somebody-elses"}, False),
        ({"tag": "assay-campaign:x"}, False),
    ],
)
def test_only_tagged_runs_of_campaigns_and_loops_are_covered(changes, covered):
    happened = event("Cancelled", **changes)
    assert on_server().trigger.covers_resources(happened.resource, happened.related) is covered


def test_only_the_end_of_a_canceled_run_starts_it():
    expected = {
        name
        for name in ("Cancelled", "Cancelling", "Crashed", "Failed", "Suspended")
        if on_server().trigger.expects(f"prefect.flow-run.{name}")
    }
    assert expected == {"Cancelled"}


def test_it_starts_decide_with_the_run_alone():
    (action,) = on_server().actions
    assert action.deployment_id == DECIDE
    run = {"id": uuid4(), "name": "c-1"}
    parameters = {
        name: render_user_template_sync(value["template"], {"flow_run": run})
        for name, value in action.parameters.items()
    }
    assert parameters == {"canceled_run": str(run["id"])}
    form = parameter_schema(decide).model_dump_for_openapi()
    assert not form.get("required"), "everything else may be left out"
    assert parameters.keys() <= form["properties"].keys()


def test_names_in_two_places_agree():
    assert set(FLOW_NAMES) == {flow.name for flow in (campaign, design_build_test)}
    tags = {entry["name"]: entry["tags"] for entry in shipped_deployments()["deployments"]}
    assert all(tags[f"assay-{flow}"] == ["assay"] for flow in (*FLOW_NAMES, "decide"))
    assert tags["assay-sweep"] == ["assay-sweep"], "out of the way on the page Runs"


class Server:
    """What `register_automations` needs of an API; automations come back with ids, defaults and in another order."""

    def __init__(self, refuse=None):
        self.held = {}
        self.refuse = refuse
        self.writes = 0

    def read_automations_by_name(self, name):
        if self.refuse:
            request = httpx.Request("POST", "http://prefect/automations/filter")
            answer = httpx.Response(self.refuse, json={"detail": "Not Found"}, request=request)
            raise httpx.HTTPStatusError("refused", request=request, response=answer)
        return [a for a in self.held.values() if a.name == name]

    def create_automation(self, automation):
        self._hold(uuid4(), automation)

    def update_automation(self, automation_id, automation):
        self._hold(automation_id, automation)

    def _hold(self, automation_id, automation):
        self.writes += 1
        dumped = AutomationCreate.model_validate(automation.model_dump(mode="json")).model_dump(mode="json")
        self.held[automation_id] = Automation.model_validate(dumped | {"id": automation_id})

    def edit(self, name, **changes):
        (there,) = (a for a in self.held.values() if a.name == name)
        self.held[there.id] = there.model_copy(update=changes)
        return self.held[there.id]


def change(server, deployment=DECIDE, **options):
    (made,) = register_automations(server, [make_cancellation_automation(deployment)], **options)
    return made


def test_registering_again_writes_nothing():
    server = Server()
    assert change(server).change == "created"
    assert change(server).change == change(server).change == "unchanged"
    assert len(server.held) == server.writes == 1


def test_a_deployment_that_was_made_again_is_named_and_a_disabled_automation_stays_disabled():
    server = Server()
    change(server)
    before = server.edit(CANCEL, enabled=False)
    made = change(server, ANOTHER)
    assert (made.change, made.enabled) == ("updated", False)
    assert "disabled" in made.note
    now = server.held[before.id]
    assert (now.enabled, now.actions[0].deployment_id) == (False, ANOTHER)
    assert change(server, ANOTHER).change == "unchanged"


def test_what_an_operator_has_edited_is_kept():
    server = Server()
    change(server)
    (there,) = server.held.values()
    server.edit(CANCEL, trigger=there.trigger.model_copy(update={"threshold": 3}))
    made = change(server)
    assert made.change == "kept"
    assert "edited" in made.note
    assert server.held[there.id].trigger.threshold == 3


def test_a_dry_run_writes_nothing_and_reports_the_same():
    server = Server()
    dry = change(server, dry_run=True)
    assert server.writes == 0
    assert dry == change(server)


@pytest.mark.parametrize("status", [402, 403, 404, 429])
def test_a_server_without_automations_is_reported_and_stops_nothing(status):
    refused = change(Server(refuse=status))
    assert refused.change == "refused"
    assert str(status) in refused.note
    assert "sweep cancels the campaign" in refused.note


@pytest.mark.parametrize("status", [422, 500])
def test_other_failures_are_raised(status):
    with pytest.raises(httpx.HTTPStatusError):
        change(Server(refuse=status))
