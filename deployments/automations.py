"""The two automations that recover a killed run, and how they are registered without duplicates.

`assay-zombies` sets a run without heartbeats to Crashed; `assay-crashes` reschedules a crashed run. They act only on
runs of the three waiting flows with the tag `assay`. They cannot count: `runs.crashes` stops a crash loop.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import Any, Final, Literal

import httpx
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import StateType
from prefect.events.actions import ChangeFlowRunState
from prefect.events.schemas.automations import Automation, AutomationCore, EventTrigger, Posture

from prefect_assay.runs.crashes import CRASHES_AUTOMATION, RESCHEDULED_BY_AUTOMATION
from prefect_assay.runs.heartbeats import default_silence
from prefect_assay.runs.queries import ASSAY_TAG, FLOW_NAMES

ZOMBIES: Final = "assay-zombies"
CRASHES: Final = CRASHES_AUTOMATION

Change = Literal["created", "updated", "unchanged", "kept", "refused"]

_WITHOUT: Final = (
    ". Crashed runs are still taken up by the sweep, every five minutes, and a machine that dies with its worker is "
    "noticed later"
)
_MARK: Final = "assay-definition:"
# A crash counts within this time after a start; the sweep handles later ones.
_STARTED_WITHIN: Final = timedelta(days=1)
_STARTS: Final = {"prefect.flow-run.Running", "prefect.flow-run.Retrying"}
# Each run of these flows with the tag, separately. Not the sweep: its schedule runs it again anyway.
_ASSAY_RUNS: Final[dict[str, Any]] = {
    "match": {"prefect.resource.id": "prefect.flow-run.*"},
    "match_related": [
        {"prefect.resource.role": "tag", "prefect.resource.id": f"prefect.tag.{ASSAY_TAG}"},
        {"prefect.resource.role": "flow", "prefect.resource.name": list(FLOW_NAMES)},
    ],
    "for_each": {"prefect.resource.id"},
    "threshold": 1,
}
_ACTION: Final = (
    "type",
    "state",
    "name",
    "message",
    "block_document_id",
    "subject",
    "body",
    "deployment_id",
    "parameters",
)
# Responses of a server without automations, or of a plan that has no more of them.
_REFUSALS: Final = frozenset(
    {
        HTTPStatus.PAYMENT_REQUIRED,
        HTTPStatus.FORBIDDEN,
        HTTPStatus.NOT_FOUND,
        HTTPStatus.METHOD_NOT_ALLOWED,
        HTTPStatus.CONFLICT,
        HTTPStatus.TOO_MANY_REQUESTS,
    }
)


@dataclass(frozen=True)
class AutomationChange:
    """The change of one automation, made or to be made.

    `kept`: an operator has edited it. `refused`: the server does not accept it. `note` is for people, or empty.
    """

    name: str
    change: Change
    enabled: bool = True
    note: str = ""


def automations(silence: timedelta | None = None) -> tuple[AutomationCore, ...]:
    """The two automations; `silence` under three heartbeat intervals would start live runs twice."""
    return _zombies(silence or default_silence()), _crashes()


def register_automations(
    client: SyncPrefectClient, wanted: Iterable[AutomationCore], *, dry_run: bool = False
) -> tuple[AutomationChange, ...]:
    """Create or update automations on the server, by name. Safe to repeat.

    An automation that an operator has edited is kept, and a disabled one stays disabled. A server that refuses is
    reported and not an error: the sweep reschedules crashed runs, too.
    """
    return tuple(_register(client, automation, dry_run=dry_run) for automation in wanted)


def _zombies(silence: timedelta) -> AutomationCore:
    return _automation(
        ZOMBIES,
        "A run of prefect-assay that sends no heartbeat any more has lost its process: it is declared crashed. "
        "Suspended runs are not watched.",
        EventTrigger(
            # These events begin the watch, any event ends it: a suspended run, too, has sent its last one.
            after={*_STARTS, "prefect.flow-run.heartbeat"},
            expect={"prefect.flow-run.*"},
            posture=Posture.Proactive,
            within=silence,
            **_ASSAY_RUNS,
        ),
        (StateType.CRASHED, "Crashed"),
        f"No heartbeat for {silence.total_seconds():.0f} s: its process is gone.",
    )


def _crashes() -> AutomationCore:
    return _automation(
        CRASHES,
        "A run of prefect-assay that crashed after it had begun is scheduled again: it looks at what it has "
        "ordered and goes on. The run itself ends as failed when it crashes again and again.",
        EventTrigger(
            # Only a crash after a start: one before the flow begins (a broken environment) would repeat forever,
            # because no code that counts is ever reached. The sweep handles those.
            after=_STARTS,
            expect={"prefect.flow-run.Crashed"},
            posture=Posture.Reactive,
            within=_STARTED_WITHIN,
            **_ASSAY_RUNS,
        ),
        (StateType.SCHEDULED, "AwaitingRetry"),
        RESCHEDULED_BY_AUTOMATION,
    )


def _automation(
    name: str, description: str, trigger: EventTrigger, state: tuple[StateType, str], message: str
) -> AutomationCore:
    """An automation that sets a run's state."""
    action = ChangeFlowRunState(state=state[0], name=state[1], force=False, message=message)
    return marked(AutomationCore(name=name, description=description, trigger=trigger, actions=[action]))


def marked(bare: AutomationCore) -> AutomationCore:
    """The automation with the tags by which a later registration knows its own definition from an operator's."""
    return bare.model_copy(update={"tags": [ASSAY_TAG, _MARK + _digest(bare)]})


def _digest(automation: AutomationCore) -> str:
    """Digest of an automation's definition, of named fields only: a default that a later Prefect adds is no edit."""
    trigger = automation.trigger.model_dump(mode="json")
    fields = ("type", "posture", "after", "expect", "within", *_ASSAY_RUNS)
    what = {
        "description": automation.description,
        "trigger": {name: _sorted(trigger.get(name)) for name in fields},
        "actions": [
            {k: a.get(k) for k in _ACTION}
            for a in (action.model_dump(mode="json") for action in automation.actions)
        ],
    }
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]


def _sorted(value: Any) -> Any:
    """Normalize: sets arrive as lists in any order, a list of one as a single name."""
    if isinstance(value, list):
        return sorted((_sorted(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    if isinstance(value, dict):
        return {key: _sorted(item if isinstance(item, list) else [item]) for key, item in value.items()}
    return value


def _register(client: SyncPrefectClient, wanted: AutomationCore, *, dry_run: bool) -> AutomationChange:
    try:
        found = client.read_automations_by_name(wanted.name)
        if not found:
            if not dry_run:
                client.create_automation(wanted)
            return AutomationChange(wanted.name, "created")
        return _update(client, found[0], wanted, dry_run=dry_run)
    except httpx.HTTPStatusError as error:
        if error.response.status_code not in _REFUSALS:
            raise
        return AutomationChange(
            wanted.name,
            "refused",
            enabled=False,
            note=(
                f"the server answers {error.response.status_code} to automations ({_detail(error)})"
                + (_WITHOUT if wanted.name in {ZOMBIES, CRASHES} else "")
            ),
        )


def _update(
    client: SyncPrefectClient, present: Automation, wanted: AutomationCore, *, dry_run: bool
) -> AutomationChange:
    off = "" if present.enabled else "it is disabled, and stays so"
    if _digest(present) == _digest(wanted):
        return AutomationChange(wanted.name, "unchanged", enabled=present.enabled, note=off)
    if _MARK + _digest(present) not in present.tags:
        note = "somebody has edited it; delete it and deploy again to get the shipped one"
        return AutomationChange(wanted.name, "kept", enabled=present.enabled, note=note)
    if not dry_run:
        # Every field is named, because the client sends only what was set; the server refuses the owner here.
        fields = wanted.model_dump(exclude={"owner_resource"}) | {"enabled": present.enabled}
        client.update_automation(present.id, AutomationCore.model_validate(fields))
    return AutomationChange(wanted.name, "updated", enabled=present.enabled, note=off)


def _detail(error: httpx.HTTPStatusError) -> str:
    try:
        body = error.response.json()
    except ValueError:
        return error.response.reason_phrase
    detail = body.get("detail") if isinstance(body, dict) else None
    return str(detail or error.response.reason_phrase)[:200]
