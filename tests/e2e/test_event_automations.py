"""Each automation on events is fired on a real Prefect server by the event that a flow run sends."""

import json
import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from prefect import flow
from prefect.blocks.notifications import CustomWebhookNotificationBlock
from prefect.client.schemas.filters import FlowRunFilter
from prefect.runtime import flow_run as current_run

from prefect_assay.deployments.automations import register_automations
from prefect_assay.deployments.event_automations import DESIGNS_DROPPED, RECIPES, chosen_automations
from prefect_assay.events import emit, flush, kinds
from support.runs.world import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

OF = {"experiment_id": "e-1", "experiment_code": "LAB-7", "campaign_id": "c-7", "order_key": "k-7"}
NOTIFIED = {
    "notify-stage": (kinds.StageChanged(**OF, stage="in_production", results_status="none"), "in_production"),
    "notify-invoice": (
        kinds.ExperimentInvoiced(**OF, amount_cents=123_450, payment_method="async_invoice"),
        "1234.50 USD",
    ),
    "notify-approval": (
        kinds.ApprovalRequested(
            approval="approve-7",
            about="spending",
            question="Quote for c-7",
            until=datetime(2030, 1, 1, tzinfo=UTC),
        ),
        "Quote for c-7",
    ),
    "notify-overdue": (
        kinds.ExperimentOverdue(**OF, stage="in_review", deadline_days=45),
        "LAB-7 is overdue",
    ),
    "notify-budget": (
        kinds.BudgetReached(key="k-7", what="Campaign c-7", amount_cents=200_000, cap_cents=1, asks=True),
        "2000.00 USD",
    ),
}
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

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/", got
        finally:
            server.shutdown()


@flow
def designer(round_name: str, measurements: str) -> None:
    """What the automation starts."""


@flow(name="reports")
def reports() -> str:
    """A run that sends each event twice, as after a kill."""
    for _ in range(2):
        for fact in [*(fact for fact, _ in NOTIFIED.values()), READY]:
            emit(fact)
        flush()
    return current_run.name


def runs_of(world, deployment_id):
    wanted = FlowRunFilter.model_validate({"deployment_id": {"any_": [deployment_id]}})
    return world.api.read_flow_runs(flow_run_filter=wanted)


def test_each_automation_fires_once_for_its_event(world):
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
            made = register_automations(world.api, chosen_automations(world.api, choices))
            assert {c.name: c.change for c in made} == {f"assay-{name}": change for name in RECIPES}
        name = reports()
        dropped = {
            "event": DESIGNS_DROPPED,
            "id": "0198c0de-0000-7000-8000-000000000001",
            "occurred": datetime.now(UTC).isoformat(),
            "resource": {"prefect.resource.id": "assay.designs.egfr"},
            "payload": {},
        }
        for _ in range(2):
            world.api.request("POST", "/events", json=[dropped])

        def all_fired():
            said = [entry["text"] for entry in got]
            done = all(any(words in text for text in said) for _, words in NOTIFIED.values())
            return done and len(runs_of(world, started)) >= 2

        eventually(all_fired, seconds=60, what=f"all automations; so far {got}")
        assert len(got) == len(NOTIFIED), got
        assert all(f"Run {name}" in entry["text"] for entry in got), got
        given = [run.parameters for run in runs_of(world, started)]
        assert sorted(given, key=len) == [
            {},
            {"round_name": "LAB-7", "measurements": "s3://assay/c-7/LAB-7/v001/results.csv"},
        ]
