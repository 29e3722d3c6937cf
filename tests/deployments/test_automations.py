"""The two automations as definitions: which events they cover, judged by Prefect's own server code; and re-registering.

Whether they work on real processes is shown in tests/e2e/test_recovery.py.
"""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import httpx
import pytest
from prefect.events.schemas.automations import Automation, AutomationCore
from prefect.server.events.schemas.automations import AutomationCreate
from prefect.server.events.schemas.events import ReceivedEvent
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

from prefect_assay.deployments.automations import (
    CRASHES,
    ZOMBIES,
    automations,
    register_automations,
)
from prefect_assay.deployments.setup import shipped_deployments
from prefect_assay.flows import campaign, design_build_test, experiment
from prefect_assay.runs.heartbeats import default_silence
from prefect_assay.runs.queries import FLOW_NAMES


def event(name, flow="experiment", tag="assay"):
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


def trigger(which):
    (found,) = (a for a in automations() if a.name == which)
    return AutomationCreate.model_validate(found.model_dump(mode="json")).trigger


@pytest.mark.parametrize("which", [CRASHES, ZOMBIES])
@pytest.mark.parametrize(
    ("given", "covered"),
    [
        ({}, True),
        ({"flow": "campaign"}, True),
        ({"flow": "design-build-test"}, True),
        ({"flow": "sweep"}, False),
        ({"flow": "somebody-elses"}, False),
        ({"tag": "somebody-elses"}, False),
        ({"tag": "assay-campaign:x"}, False),
    ],
)
def test_only_tagged_runs_of_the_waiting_flows_are_covered(which, given, covered):
    assert (
        trigger(which).covers_resources(event("Crashed", **given).resource, event("x", **given).related)
        is covered
    )


def test_a_suspended_run_is_not_watched():
    watch = trigger(ZOMBIES)
    assert {name: watch.starts_after(f"prefect.flow-run.{name}") for name in ("Running", "heartbeat")} == {
        "Running": True,
        "heartbeat": True,
    }
    for name in ("Suspended", "Paused", "Resuming", "Pending", "Submitting", "AwaitingRetry", "Completed"):
        assert not watch.starts_after(f"prefect.flow-run.{name}")
        assert watch.expects(f"prefect.flow-run.{name}")  # it ends the watch


def test_a_crash_is_answered_only_after_a_start():
    answer = trigger(CRASHES)
    assert answer.starts_after("prefect.flow-run.Running")
    assert not answer.starts_after("prefect.flow-run.Pending")
    assert answer.expects("prefect.flow-run.Crashed")
    assert not answer.expects("prefect.flow-run.Failed")


@pytest.mark.parametrize("heartbeat", [30, 180])
def test_three_heartbeats_may_be_lost(heartbeat):
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: heartbeat}):
        assert default_silence() > 3 * timedelta(seconds=heartbeat)
        assert trigger(ZOMBIES).within == default_silence()


def test_names_in_two_places_agree():
    names = {flow.name for flow in (experiment, campaign, design_build_test)}
    assert set(FLOW_NAMES) == names
    assert all("assay" in entry["tags"] for entry in shipped_deployments()["deployments"])


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


def changes(server, wanted=None):
    return {c.name: c.change for c in register_automations(server, wanted or automations())}


def test_registering_again_writes_nothing():
    server = Server()
    assert changes(server) == {ZOMBIES: "created", CRASHES: "created"}
    assert changes(server) == changes(server) == {ZOMBIES: "unchanged", CRASHES: "unchanged"}
    assert len(server.held) == server.writes == 2


def test_a_new_version_is_updated_in_place_and_a_disabled_one_stays_disabled():
    server = Server()
    register_automations(server, automations())
    before = server.edit(ZOMBIES, enabled=False)
    (zombies, _) = register_automations(server, automations(timedelta(minutes=30)))
    assert (zombies.change, zombies.enabled) == ("updated", False)
    assert "disabled" in zombies.note
    now = server.held[before.id]
    assert (now.enabled, now.trigger.within) == (False, timedelta(minutes=30))
    assert len(server.held) == 2
    assert changes(server, automations(timedelta(minutes=30)))[ZOMBIES] == "unchanged"


def test_what_an_operator_has_edited_is_kept():
    server = Server()
    register_automations(server, automations())
    (there,) = (a for a in server.held.values() if a.name == ZOMBIES)
    longer = there.trigger.model_copy(update={"within": timedelta(hours=3)})
    server.edit(ZOMBIES, trigger=longer)
    (zombies, _) = register_automations(server, automations())
    assert zombies.change == "kept"
    assert "edited" in zombies.note
    assert server.held[there.id].trigger.within == timedelta(hours=3)


def test_a_dry_run_writes_nothing_and_reports_the_same():
    server = Server()
    dry = register_automations(server, automations(), dry_run=True)
    assert server.writes == 0
    assert dry == register_automations(server, automations())


@pytest.mark.parametrize("status", [402, 403, 404, 429])
def test_a_server_without_automations_is_reported_and_stops_nothing(status):
    refused = register_automations(Server(refuse=status), automations())
    assert {c.change for c in refused} == {"refused"}
    assert all(str(status) in c.note and "sweep" in c.note for c in refused)


@pytest.mark.parametrize("status", [422, 500])
def test_other_failures_are_raised(status):
    with pytest.raises(httpx.HTTPStatusError):
        register_automations(Server(refuse=status), automations())


def test_a_description_states_the_action():
    for automation in automations():
        assert isinstance(automation, AutomationCore)
        assert automation.description
        assert automation.actions[0].message
