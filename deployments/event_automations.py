"""Automations on the events of docs/operating.md, off unless an operator chooses them: `deploy --automation NAME=TARGET`.

A recipe has an event, a condition on it, and one action: a notification by a saved block, or a run of a deployment. It
must not know what sends the event.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.events.actions import ActionTypes, RunDeployment, SendNotification
from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture
from prefect.exceptions import ObjectNotFound

from prefect_assay.blocks.deployment_runs import find_deployment
from prefect_assay.campaigns.events.kinds import (
    ApprovalRequested,
    BudgetReached,
    ExperimentInvoiced,
    ExperimentOverdue,
    ProblemOpened,
    ProblemResolved,
    ResultsReady,
    StatusChanged,
)
from prefect_assay.campaigns.problems import ALERTS
from prefect_assay.campaigns.problems.find import SILENT_AFTER
from prefect_assay.campaigns.problems.kinds import RECEIVER_UNREACHABLE, SWEEP_SILENT
from prefect_assay.deployments.automations import mark_automation
from prefect_assay.errors import ConfigurationError

SWEEP_COMPLETED: Final = "prefect.flow-run.Completed*"  # also with gaps
DESIGNS_DROPPED: Final = "assay.designs.dropped"  # sent by whatever writes the file
HINT: Final = "assay.hint"  # sent by whatever hears that the service has news, and believed by nobody
# A sweep takes seconds, and the schedule starts one every five minutes anyway.
HINT_INTERVAL: Final = timedelta(minutes=1)

_USD: Final = "{{ '%.2f' | format(event.payload.amount_cents / 100) }} USD"
# The server knows the address of its pages only where PREFECT_UI_URL is set.
_RUN: Final = "Run {{ flow_run.name }}{% if flow_run | ui_url %}: {{ flow_run | ui_url }}{% endif %}"


@dataclass(frozen=True)
class Recipe:
    """An event and what it sets off: a notification if there is a `subject`, else a run with `parameters`.

    `labels` of the event's resource have to match. Texts and parameters are Jinja templates.
    """

    description: str
    event: str
    resource: str
    labels: Mapping[str, str] = field(default_factory=dict)
    subject: str | None = None
    body: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    # After it has fired, further events of any resource count only when this time is over
    at_most_every: timedelta = timedelta(0)
    # Fires if no run of the sweep has completed for so long, whatever `event`
    silence: timedelta | None = None

    @property
    def takes(self) -> str:
        """The kind of the target, for people."""
        return "a notification block, as TYPE/NAME" if self.subject else "a deployment, as FLOW/NAME"


def _make_problem_recipe(description: str, labels: Mapping[str, str]) -> Recipe:
    return Recipe(
        description=description,
        event=ProblemOpened.event,
        resource="assay.problem.*",
        labels=labels,
        subject="{{ event.payload.text }}",
        body="{{ event.payload.next_step }}. Problem {{ event.payload.kind }}, since {{ event.payload.since }}; all: "
        "prefect-assay status --problems",
    )


# The server notices it, whether any other process lives or not.
_SWEEP_SILENT: Final = Recipe(
    description="Notify when no sweep has completed for twenty minutes.",
    event=SWEEP_COMPLETED,
    resource="prefect.flow-run.*",
    subject="No sweep has completed for a while",
    body=f"{ALERTS[SWEEP_SILENT].next_step} Until then only webhooks wake runs. All problems: "
    "prefect-assay status --problems",
    silence=SILENT_AFTER,
)


RECIPES: Final[Mapping[str, Recipe]] = {
    "notify-status": Recipe(
        description="Notify when an experiment has another status.",
        event=StatusChanged.event,
        resource="assay.experiment.*",
        subject="{{ event.resource.name }} has the status {{ event.payload.status }}",
        body="Campaign {{ event.payload.campaign_id }}, results: {{ event.payload.results_status }}. " + _RUN,
    ),
    "notify-invoice": Recipe(
        description="Notify when an invoice waits for a person to pay it.",
        event=ExperimentInvoiced.event,
        resource="assay.experiment.*",
        labels={"assay.payment-method": "async_invoice"},
        subject=f"The invoice of {{{{ event.resource.name }}}} over {_USD} is open",
        body="{{ event.payload.account }}. The run's artifact `assay-invoice` links to the page to pay. "
        + _RUN,
    ),
    "notify-approval": Recipe(
        description="Notify when a campaign asks a person.",
        event=ApprovalRequested.event,
        resource="assay.approval.*",
        subject="A campaign asks for a decision",
        body="{{ event.payload.account }}. {{ event.payload.question }} Answer until {{ event.payload.until }}: prefect-assay approve or reject "
        "{{ event.payload.campaign_id }}, or the form of the deployment decide. " + _RUN,
    ),
    "notify-overdue": Recipe(
        description="Notify when an experiment has no complete results at its deadline.",
        event=ExperimentOverdue.event,
        resource="assay.experiment.*",
        subject="{{ event.resource.name }} is overdue",
        body="Its status is {{ event.payload.status }}, {{ event.payload.deadline_days }} days after the order. "
        + _RUN,
    ),
    "notify-budget": Recipe(
        description="Notify when spending would exceed a cap.",
        event=BudgetReached.event,
        resource="assay.budget.*",
        subject="A cap is reached",
        body=f"{{{{ event.payload.account }}}}. {{{{ event.payload.what }}}} costs {_USD}, the cap is "
        "{{ '%.2f' | format(event.payload.cap_cents / 100) }} USD. " + _RUN,
    ),
    "start-designer": Recipe(
        description="Start a designer with the table of an experiment when its results are released.",
        event=ResultsReady.event,
        resource="assay.experiment.*",
        parameters={
            "round_name": "{{ event.resource.name }}",
            "measurements": "{{ event.payload.table }}",
        },
    ),
    "start-round": Recipe(
        description="Start a loop when a file of designs was dropped; the deployment has its parameters.",
        event=DESIGNS_DROPPED,
        resource="assay.designs.*",
    ),
    "start-sweep": Recipe(
        description="Start the sweep when somebody hints at news of the service; at most once a minute.",
        event=HINT,
        resource="assay.hint.*",
        at_most_every=HINT_INTERVAL,
    ),
    "notify-problem": _make_problem_recipe("Notify of every problem of docs/operating.md.", {}),
    **{
        f"notify-{kind}": _make_problem_recipe(f"Notify when {alert.meaning}.", {"assay.kind": kind})
        for kind, alert in ALERTS.items()
        if kind != RECEIVER_UNREACHABLE  # no sweep finds it, so that its event is never sent
    },
    f"notify-{SWEEP_SILENT}": _SWEEP_SILENT,
    "notify-resolved": Recipe(
        description="Notify when a problem is over.",
        event=ProblemResolved.event,
        resource="assay.problem.*",
        subject="Over: {{ event.payload.kind }} {{ event.payload.subject }}",
        body="It began {{ event.payload.since }}.",
    ),
}


def make_chosen_automations(client: SyncPrefectClient, chosen: Iterable[str]) -> tuple[AutomationCore, ...]:
    """The automations of `NAME=TARGET` choices, named `assay-NAME`.

    Raises:
        ConfigurationError: a name is unknown, or a target does not exist.
    """
    return tuple(_make_automation(client, *_parse_choice(choice)) for choice in chosen)


def check_choices(chosen: Iterable[str]) -> None:
    """Raise ConfigurationError for an unknown name or a choice without a target, before anything is changed."""
    for choice in chosen:
        _parse_choice(choice)


def _parse_choice(choice: str) -> tuple[str, str]:
    name, _, target = choice.partition("=")
    if name not in RECIPES:
        raise ConfigurationError(
            f"there is no automation {name!r}; choose one of {', '.join(RECIPES)}, as NAME=TARGET"
        )
    kind, _, what = target.partition("/")
    if not (kind and what):
        raise ConfigurationError(f"--automation {name} needs {RECIPES[name].takes}: {name}=...")
    return name, target


def _make_automation(client: SyncPrefectClient, name: str, target: str) -> AutomationCore:
    recipe = RECIPES[name]
    return mark_automation(
        AutomationCore(
            name=f"assay-{name}",
            description=recipe.description,
            trigger=_make_silence_trigger(recipe, recipe.silence)
            if recipe.silence
            else _make_event_trigger(recipe),
            actions=[_make_action(client, recipe, target)],
        )
    )


def _make_event_trigger(recipe: Recipe) -> EventTrigger:
    return EventTrigger(
        expect={recipe.event},
        match={"prefect.resource.id": recipe.resource, **recipe.labels},
        for_each=set() if recipe.at_most_every else {"prefect.resource.id"},
        posture=Posture.Reactive,
        threshold=1,
        within=recipe.at_most_every,
    )


def _make_silence_trigger(recipe: Recipe, silence: timedelta) -> EventTrigger:
    return EventTrigger(
        expect={recipe.event},
        match={"prefect.resource.id": recipe.resource},
        match_related={"prefect.resource.role": "flow", "prefect.resource.name": "sweep"},
        posture=Posture.Proactive,
        threshold=1,
        within=silence,
    )


def _make_action(client: SyncPrefectClient, recipe: Recipe, target: str) -> ActionTypes:
    if recipe.subject:
        block = _find_notification_block_id(client, target)
        return SendNotification(block_document_id=block, subject=recipe.subject, body=recipe.body)
    templates = {
        name: {"__prefect_kind": "jinja", "template": text} for name, text in recipe.parameters.items()
    }
    deployment = find_deployment(client, target)
    if deployment is None:
        raise ConfigurationError(f"there is no deployment {target}; deploy it first")
    return RunDeployment(
        source="selected", deployment_id=deployment.id, parameters=templates or None, job_variables=None
    )


def _find_notification_block_id(client: SyncPrefectClient, target: str) -> UUID:
    slug, _, name = target.partition("/")
    try:
        return client.read_block_document_by_name(name, slug, include_secrets=False).id
    except ObjectNotFound as error:
        raise ConfigurationError(
            f"there is no block {target}; save a notification block, such as slack-webhook/{name}, in the Prefect UI"
        ) from error
