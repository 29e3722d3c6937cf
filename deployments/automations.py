"""The automation that follows a canceled run, and how automations are registered without duplicates.

`assay-cancel` starts `decide` for a run that somebody has canceled: it cancels the run's campaign within seconds. Where
automations are off, the sweep does it.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Literal
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient
from prefect.events.actions import RunDeployment
from prefect.events.schemas.automations import Automation, AutomationCore, EventTrigger, Posture

from prefect_assay.campaigns.runs.queries import ASSAY_TAG, FLOW_NAMES

CANCEL: Final = "assay-cancel"

Change = Literal["created", "updated", "unchanged", "kept", "refused"]

_WITHOUT: Final = ". The sweep cancels the campaign of a canceled run instead, within five minutes"
_MARK: Final = "assay-definition:"
_TRIGGER: Final = (
    "type",
    "posture",
    "after",
    "expect",
    "within",
    "match",
    "match_related",
    "for_each",
    "threshold",
)
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


def make_cancellation_automation(decide: UUID) -> AutomationCore:
    """The automation that starts the deployment `decide` for each canceled run of a campaign or a loop."""
    return mark_automation(
        AutomationCore(
            name=CANCEL,
            description="The campaign of a run that somebody cancels is canceled: nothing more is ordered, accepted or "
            "paid for it, and an artifact of the run says what remains.",
            trigger=EventTrigger(
                expect={"prefect.flow-run.Cancelled"},
                match={"prefect.resource.id": "prefect.flow-run.*"},
                match_related=[
                    {"prefect.resource.role": "tag", "prefect.resource.id": f"prefect.tag.{ASSAY_TAG}"},
                    {"prefect.resource.role": "flow", "prefect.resource.name": list(FLOW_NAMES)},
                ],
                for_each={"prefect.resource.id"},
                posture=Posture.Reactive,
                threshold=1,
            ),
            actions=[
                RunDeployment(
                    source="selected",
                    deployment_id=decide,
                    parameters={"canceled_run": {"__prefect_kind": "jinja", "template": "{{ flow_run.id }}"}},
                    job_variables=None,
                )
            ],
        )
    )


def register_automations(
    client: SyncPrefectClient, automations: Iterable[AutomationCore], *, dry_run: bool = False
) -> tuple[AutomationChange, ...]:
    """Create or update automations on the server, by name. Safe to repeat.

    An automation that an operator has edited is kept, and a disabled one stays disabled. A server that refuses is
    reported and not an error: the sweep does the same, later.
    """
    return tuple(_register_automation(client, automation, dry_run=dry_run) for automation in automations)


def mark_automation(bare: AutomationCore) -> AutomationCore:
    """The automation with the tags by which a later registration knows its own definition from an operator's."""
    return bare.model_copy(update={"tags": [ASSAY_TAG, _MARK + _compute_digest(bare)]})


def _compute_digest(automation: AutomationCore) -> str:
    """Digest of an automation's definition, of named fields only: a default that a later Prefect adds is not an edit."""
    trigger = automation.trigger.model_dump(mode="json")
    what = {
        "description": automation.description,
        "trigger": {name: _normalize(trigger.get(name)) for name in _TRIGGER},
        "actions": [
            {k: a.get(k) for k in _ACTION}
            for a in (action.model_dump(mode="json") for action in automation.actions)
        ],
    }
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]


def _normalize(value: Any) -> Any:
    """Normalize: sets arrive as lists in any order, a list of one as a single name."""
    if isinstance(value, list):
        return sorted((_normalize(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    if isinstance(value, dict):
        return {key: _normalize(item if isinstance(item, list) else [item]) for key, item in value.items()}
    return value


def _register_automation(
    client: SyncPrefectClient, automation: AutomationCore, *, dry_run: bool
) -> AutomationChange:
    try:
        matches = client.read_automations_by_name(automation.name)
        if not matches:
            if not dry_run:
                client.create_automation(automation)
            return AutomationChange(automation.name, "created")
        return _update_automation(client, matches[0], automation, dry_run=dry_run)
    except httpx.HTTPStatusError as error:
        if error.response.status_code not in _REFUSALS:
            raise
        return AutomationChange(
            automation.name,
            "refused",
            enabled=False,
            note=(
                f"the server answers {error.response.status_code} to automations ({_explain_error(error)})"
                + (_WITHOUT if automation.name == CANCEL else "")
            ),
        )


def _update_automation(
    client: SyncPrefectClient, present: Automation, automation: AutomationCore, *, dry_run: bool
) -> AutomationChange:
    off = "" if present.enabled else "it is disabled, and stays so"
    if _compute_digest(present) == _compute_digest(automation):
        return AutomationChange(automation.name, "unchanged", enabled=present.enabled, note=off)
    if _MARK + _compute_digest(present) not in present.tags:
        note = "somebody has edited it; delete it and deploy again to get the shipped one"
        return AutomationChange(automation.name, "kept", enabled=present.enabled, note=note)
    if not dry_run:
        # Every field is named, because the client sends only what was set; the server refuses the owner here.
        fields = automation.model_dump(exclude={"owner_resource"}) | {"enabled": present.enabled}
        client.update_automation(present.id, AutomationCore.model_validate(fields))
    return AutomationChange(automation.name, "updated", enabled=present.enabled, note=off)


def _explain_error(error: httpx.HTTPStatusError) -> str:
    try:
        body = error.response.json()
    except ValueError:
        return error.response.reason_phrase
    detail = body.get("detail") if isinstance(body, dict) else None
    return str(detail or error.response.reason_phrase)[:200]
