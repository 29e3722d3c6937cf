"""The automations on events: what they match and what they say, judged by Prefect's own server code.

tests/e2e/test_event_automations.py registers them on a real server, and fires one of each action.
"""

import re
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect.exceptions import ObjectNotFound
from prefect.server.events.schemas.automations import AutomationCreate
from prefect.server.events.schemas.events import ReceivedEvent
from prefect.server.utilities.user_templates import render_user_template_sync

from prefect_assay.campaigns.events import KINDS, kinds
from prefect_assay.campaigns.events.sending import list_related, make_resource
from prefect_assay.campaigns.problems import ALERTS
from prefect_assay.campaigns.problems.kinds import RECEIVER_UNREACHABLE, SWEEP_SILENT
from prefect_assay.deployments.automations import register_automations
from prefect_assay.deployments.event_automations import (
    DESIGNS_DROPPED,
    HINT,
    RECIPES,
    SWEEP_COMPLETED,
    check_choices,
    make_chosen_automations,
)
from prefect_assay.errors import ConfigurationError

PAGE = (Path(__file__).parents[2] / "docs" / "operating.md").read_text(encoding="utf-8")
IDS = {"experiment_id": "e-1", "experiment_code": "LAB-1", "campaign_id": "c-1", "order_key": "k-1"}
RUN_FACTS = {
    "notify-status": kinds.StatusChanged(**IDS, status="in_production", results_status="none"),
    "notify-invoice": kinds.ExperimentInvoiced(**IDS, amount_cents=123_450, payment_method="async_invoice"),
    "notify-approval": kinds.ApprovalRequested(
        campaign_id="c-1",
        approval="approve-1",
        about="spending",
        question="Quote for c-1 costs 9.00 USD",
        until=datetime(2026, 1, 2, tzinfo=UTC),
    ),
    "notify-overdue": kinds.ExperimentOverdue(**IDS, status="in_review", deadline_days=45),
    "notify-budget": kinds.BudgetReached(
        key="k-1", what="Campaign c-1", amount_cents=200_000, cap_cents=100_000, asks=True
    ),
    "start-designer": kinds.ResultsReady(
        **IDS, version=1, table="s3://assay/c-1/LAB-1/v001/results.csv", rows=3
    ),
}
SINCE = datetime(2026, 1, 1, tzinfo=UTC)
PROBLEMS = {
    f"notify-{kind}": kinds.ProblemOpened(
        kind=kind, subject="s-7", since=SINCE, text=f"something about {kind}", next_step="mend it"
    )
    for kind in ALERTS
    if kind != RECEIVER_UNREACHABLE
}
NO_SWEEP = PROBLEMS.pop(f"notify-{SWEEP_SILENT}")  # its own automation waits for silence
FACTS = (
    RUN_FACTS
    | PROBLEMS
    | {
        "notify-problem": NO_SWEEP,
        "notify-resolved": kinds.ProblemResolved(
            kind="campaign-without-run", subject="s-7", since=SINCE, until=datetime(2026, 1, 2, tzinfo=UTC)
        ),
    }
)
TARGETS = {
    name: "slack-webhook/team" if recipe.subject else "design/mine" for name, recipe in RECIPES.items()
}


class Server:
    """Blocks and deployments by their names."""

    def __init__(self):
        self.held = {}
        self.block, self.deployment = uuid4(), uuid4()

    def read_block_document_by_name(self, name, block_type_slug, *, include_secrets):
        assert not include_secrets
        if (block_type_slug, name) != ("slack-webhook", "team"):
            raise ObjectNotFound(http_exc=Exception())
        return SimpleNamespace(id=self.block)

    def read_deployment_by_name(self, name):
        if name != "design/mine":
            raise ObjectNotFound(http_exc=Exception())
        return SimpleNamespace(id=self.deployment)

    def read_automations_by_name(self, name):
        return [automation for automation in self.held.values() if automation.name == name]

    def create_automation(self, automation):
        stored = AutomationCreate.model_validate(automation.model_dump(mode="json"))
        for action in stored.actions:
            if getattr(action, "parameters", None):  # they come back in another order
                action.parameters = dict(reversed(action.parameters.items()))
        self.held[automation.name] = automation.__class__.model_validate(stored.model_dump(mode="json"))


def made(name):
    (automation,) = make_chosen_automations(Server(), [f"{name}={TARGETS[name]}"])
    return AutomationCreate.model_validate(automation.model_dump(mode="json"))


def event(fact):
    return ReceivedEvent(
        occurred=datetime.now(UTC),
        event=fact.event,
        resource=make_resource(fact),
        related=list_related(fact),
        payload=fact.model_dump(mode="json", exclude_none=True),
        id=fact.id,
    )


def fires(name, fact):
    trigger, happened = made(name).trigger, event(fact)
    return trigger.expects(happened.event) and trigger.covers_resources(happened.resource, happened.related)


def test_every_automation_of_a_fact_is_judged():
    """The others: silence has no event, and files and hints are no facts of the plugin."""
    assert RECIPES.keys() - FACTS.keys() == {f"notify-{SWEEP_SILENT}", "start-round", "start-sweep"}


@pytest.mark.parametrize("name", FACTS)
def test_it_fires_on_its_own_event_only(name):
    expected = {*PROBLEMS, name} if name == "notify-problem" else {name}
    assert {other for other, fact in FACTS.items() if fires(name, fact)} == expected


def test_an_invoice_that_a_machine_pays_is_no_news():
    machine = FACTS["notify-invoice"].model_copy(update={"payment_method": "x402-exact"})
    assert not fires("notify-invoice", machine)


@pytest.mark.parametrize("name", [name for name in FACTS if RECIPES[name].subject])
def test_the_notification_says_what_has_happened(name):
    (action,) = made(name).actions
    run = {"id": uuid4(), "name": "c-1-0"}
    texts = [
        render_user_template_sync(
            re.sub(r"flow_run \| ui_url", "flow_run.name", text),
            {"event": event(FACTS[name]), "flow_run": run},
        )
        for text in (action.subject, action.body)
    ]
    assert not any("{{" in text or "Failed to render" in text for text in texts), texts
    values = {
        "notify-invoice": "1234.50 USD",
        "notify-budget": "2000.00 USD",
        "notify-approval": "9.00 USD",
        "notify-resolved": "Over: campaign-without-run s-7",
    }
    of_a_problem = name not in RUN_FACTS and name != "notify-resolved"
    assert (FACTS[name].text if of_a_problem else values.get(name, "LAB-1")) in " ".join(texts)
    assert ("c-1-0" in texts[1]) is (name in RUN_FACTS)


def test_templates_name_fields_of_the_event():
    by_name = {kind.event: set(kind.model_fields) for kind in KINDS}
    for name, recipe in RECIPES.items():
        text = " ".join([recipe.subject or "", recipe.body, *recipe.parameters.values()])
        used = set(re.findall(r"event\.payload\.(\w+)", text))
        assert used <= by_name.get(recipe.event, set()), name
    assert {r.event for r in RECIPES.values()} - set(by_name) == {DESIGNS_DROPPED, HINT, SWEEP_COMPLETED}


def test_a_designer_gets_the_table():
    (action,) = made("start-designer").actions
    parameters = {
        k: render_user_template_sync(v["template"], {"event": event(FACTS["start-designer"])})
        for k, v in action.parameters.items()
    }
    assert parameters == {"round_name": "LAB-1", "measurements": "s3://assay/c-1/LAB-1/v001/results.csv"}


def test_choosing_again_changes_nothing():
    server = Server()
    for change in ("created", "unchanged"):
        automations = make_chosen_automations(
            server, [f"{name}={target}" for name, target in TARGETS.items()]
        )
        assert {c.change for c in register_automations(server, automations)} == {change}
    assert set(server.held) == {f"assay-{name}" for name in RECIPES}


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (
            "notify-everything=slack-webhook/team",
            "there is no automation 'notify-everything'; choose one of notify-status",
        ),
        (
            "notify-receiver-unreachable=slack-webhook/team",
            "there is no automation 'notify-receiver-unreachable'; choose one of notify-status",
        ),
        ("notify-status", "notify-status needs a notification block, as TYPE/NAME"),
        ("start-round=mine", "start-round needs a deployment, as FLOW/NAME"),
        (
            "notify-status=slack-webhook/other",
            "there is no block slack-webhook/other; save a notification block",
        ),
        ("start-round=design/other", "there is no deployment design/other"),
    ],
)
def test_a_wrong_choice_names_the_next_step(choice, message):
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        make_chosen_automations(Server(), [choice])
    if "other" not in choice:
        with pytest.raises(ConfigurationError):
            check_choices([choice])


def test_every_recipe_is_documented():
    rows = dict(re.findall(r"^\| `((?:notify|start)-[a-z]+)` \| `(assay\.[a-z.-]+)` \|", PAGE, re.MULTILINE))
    of_kinds = {f"notify-{kind}" for kind in ALERTS}  # in docs/operating.md
    assert rows == {name: recipe.event for name, recipe in RECIPES.items() if name not in of_kinds}
