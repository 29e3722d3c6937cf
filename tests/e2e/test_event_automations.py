"""Automations on events on a real Prefect server, fired by the events that a flow run sends.

tests/deployments/test_event_automations.py judges what each one matches and says.
"""

import json
import re
import shlex
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from uuid import uuid4

import pytest
from prefect import flow
from prefect.blocks.notifications import CustomWebhookNotificationBlock, SlackWebhook
from prefect.client.schemas.filters import FlowRunFilter
from prefect.runtime import flow_run as current_run

from prefect_assay.campaigns.events import emit_fact, flush_events, kinds
from prefect_assay.campaigns.problems.kinds import SWEEP_SILENT
from prefect_assay.deployments.automations import register_automations
from prefect_assay.deployments.event_automations import (
    DESIGNS_DROPPED,
    HINT,
    HINT_INTERVAL,
    RECIPES,
    make_chosen_automations,
)
from support.runs.events import names, of_campaign, stored_events
from support.runs.world import eventually
from support.services.serving import serving

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

PAGE = (Path(__file__).parents[2] / "docs" / "operating.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("\n## Alerts and events\n")[2].partition("\n## ")[0]
EXAMPLES = re.findall(r"```(?:python|console)\n(.*?)```", SECTION, re.DOTALL)
OF = {"experiment_id": "e-1", "experiment_code": "LAB-7", "campaign_id": "c-7", "order_key": "k-7"}
INVOICED = kinds.ExperimentInvoiced(**OF, amount_cents=123_450, payment_method="async_invoice")
READY = kinds.ResultsReady(**OF, version=1, table="s3://assay/c-7/LAB-7/v001/results.csv", rows=1)


@contextmanager
def a_webhook():
    """An address, and the JSON bodies posted to it."""
    got = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as address:
        yield f"{address}/", got


@flow
def designer(round_name: str, measurements: str) -> None:
    """What the automation starts."""


@flow(name="reports")
def reports() -> str:
    """A run that sends each event twice, as after a kill."""
    for _ in range(2):
        for fact in (INVOICED, READY):
            emit_fact(fact)
        flush_events()
    return current_run.name


def runs_of(world, deployment_id):
    run_filter = FlowRunFilter.model_validate({"deployment_id": {"any_": [deployment_id]}})
    return world.api.read_flow_runs(flow_run_filter=run_filter)


def send(world, event, resource, occurred):
    happened = {"event": event, "id": str(uuid4()), "occurred": occurred.isoformat()}
    body = [{**happened, "resource": {"prefect.resource.id": resource}, "payload": {}}]
    world.api.request("POST", "/events", json=body)


def test_all_automations_are_taken_and_one_of_each_action_fires_once_for_its_event(world):
    with a_webhook() as (address, got):
        CustomWebhookNotificationBlock(
            name="team", url=address, json_data={"text": "{{subject}} {{body}}"}
        ).save("team", overwrite=True)
        started = world.api.create_deployment(
            flow_id=world.api.create_flow(designer),
            name="mine",
            parameter_openapi_schema={"type": "object", "properties": {}},
        )
        choices = [
            f"{name}={'custom-webhook/team' if recipe.subject else 'designer/mine'}"
            for name, recipe in RECIPES.items()
        ]
        for change in ("created", "unchanged"):
            made = register_automations(world.api, make_chosen_automations(world.api, choices))
            assert {c.name: c.change for c in made} == {f"assay-{name}": change for name in RECIPES}
        name = reports()
        send(world, DESIGNS_DROPPED, "assay.designs.egfr", datetime.now(UTC))  # handled after them
        eventually(lambda: got and len(runs_of(world, started)) == 2, seconds=60, what="all three")
        (told,) = got
        assert "1234.50 USD" in told["text"]
        assert f"Run {name}" in told["text"]
        parameters = [run.parameters for run in runs_of(world, started)]
        assert sorted(parameters, key=len) == [
            {},
            {"round_name": "LAB-7", "measurements": "s3://assay/c-7/LAB-7/v001/results.csv"},
        ]


@flow(name="looks")
def looks() -> None:
    """What stands for the sweep."""


def test_a_burst_of_hints_starts_the_sweep_once_an_interval(world):
    sweep, after = (
        world.api.create_deployment(flow_id=world.api.create_flow(looks), name=name)
        for name in ("hinted", "after")
    )
    for made in register_automations(
        world.api, make_chosen_automations(world.api, ["start-sweep=looks/hinted", "start-round=looks/after"])
    ):
        assert made.change in {"created", "updated"}

    began = datetime.now(UTC)  # of all hints but the last, however long a busy machine takes
    for number in range(5):
        send(world, HINT, f"assay.hint.gateway-{number}", began)
    eventually(lambda: runs_of(world, sweep), seconds=60, what="the sweep")
    for number in range(5):
        send(world, HINT, f"assay.hint.other-{number}", began)
    # Handled after them, and starts its run at once.
    send(world, DESIGNS_DROPPED, "assay.designs.egfr", began)
    eventually(lambda: runs_of(world, after), seconds=60, what="the event after the hints")
    assert len(runs_of(world, sweep)) == 1

    send(world, HINT, "assay.hint.gateway", began + HINT_INTERVAL + timedelta(seconds=5))
    eventually(lambda: len(runs_of(world, sweep)) == 2, seconds=60, what="the sweep of the next interval")


@flow(name="design")
def my_designer(round_name: str, measurements: str) -> None:
    """The designer of docs/operating.md."""


@flow(name="own-flow")
def own_flow(program: str) -> None:
    """A program in a flow of the user's own."""
    exec(compile(program, "docs/operating.md", "exec"), {})
    flush_events()


def test_the_examples_of_the_page(world):
    choosing, dropping, emitting = EXAMPLES
    SlackWebhook(url="http://127.0.0.1:9/hook").save("team", overwrite=True)
    world.api.create_deployment(flow_id=world.api.create_flow(my_designer), name="my-designer")
    choices = re.findall(r"--automation (\S+)", choosing)
    assert [made.name for made in make_chosen_automations(world.api, choices)] == [
        f"assay-{choice.partition('=')[0]}" for choice in choices
    ]
    # Of a name of its own: events of the tests before may be stored while this one looks.
    assert "--resource-id assay.designs.egfr" in dropping
    dropping = dropping.replace("assay.designs.egfr", "assay.designs.page")
    command = [sys.executable, "-m", *shlex.split(dropping)]
    done = subprocess.run(
        command, env=world.stack.env, check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    own_flow(emitting)
    eventually(
        lambda: names(of_campaign("egfr-round-01")) == {"assay.round.completed": 1},
        seconds=30,
        what="the round's event",
    )
    resources = [event.resource["prefect.resource.id"] for event in stored_events(DESIGNS_DROPPED)]
    assert resources.count("assay.designs.page") == 1


@pytest.mark.long
def test_the_server_itself_notices_that_no_sweep_completes(world, monkeypatch):
    """No sweep runs here, and nothing else has to: shortened to the least that Prefect takes."""
    name = f"notify-{SWEEP_SILENT}"
    monkeypatch.setitem(RECIPES, name, replace(RECIPES[name], silence=timedelta(seconds=10)))
    with a_webhook() as (address, got):
        block = CustomWebhookNotificationBlock(
            name="ops", url=address, json_data={"text": "{{subject}} {{body}}"}
        )
        block.save("ops", overwrite=True)
        automations = make_chosen_automations(world.api, [f"{name}=custom-webhook/ops"])
        for automation in world.api.read_automations_by_name(f"assay-{name}"):
            world.api.delete_automation(automation.id)
        (made,) = register_automations(world.api, automations)
        assert made.change == "created"
        try:
            eventually(lambda: got, seconds=60, what="the notification")
        finally:
            for automation in world.api.read_automations_by_name(f"assay-{name}"):
                world.api.delete_automation(automation.id)
    assert got[0]["text"].startswith("No sweep has completed for a while")
