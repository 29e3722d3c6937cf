"""Actions, resources and roles (contract 5.3), and the seven restrictions of contract 2.13 as checks of a Biscuit block.

Offline attenuation writes checks on the facts of `make_facts` (lab/docs/lab.md). Where the contract lists no values,
they are the lab's own.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal, get_args
from uuid import UUID

from pydantic import AfterValidator, BeforeValidator, Field

from assay_lab.kernel import times
from assay_lab.kernel.refusals import Body
from assay_lab.vocabulary import PaymentMethod

# service shapes, Tokens and identity: the actions that tokens allow.
Action = Literal["list", "read", "create", "update", "delete", "issue", "revoke", "mint_token"]
# What tokens can be restricted to; the contract does not list the values (4.6).
Resource = Literal[
    "experiment",
    "sequence",
    "target",
    "result",
    "update",
    "quote",
    "invoice",
    "token",
    "webhook",
    "partner",
    "feedback",
    "identity",
]
Role = Literal["member", "viewer", "partner"]

ACTIONS: Final[tuple[str, ...]] = get_args(Action)
RESOURCES: Final[tuple[str, ...]] = get_args(Resource)
ROLES: Final[tuple[Role, ...]] = get_args(Role)
READING: Final = frozenset({"list", "read"})
# Actions that remove something for good, however the route is marked.
DESTRUCTIVE: Final = frozenset({"delete", "revoke"})
PARTNER_ONLY: Final = "partner"
NAME_MAX: Final = 200

# Every capability that a call of the service requires, as whoami lists them.
CAPABILITIES: Final[Mapping[str, tuple[Action, ...]]] = {
    "experiment": ("list", "read", "create", "update"),
    "sequence": ("list", "read", "create"),
    "target": ("list", "read", "create"),
    "result": ("list", "read"),
    "update": ("list",),
    "quote": ("list", "read", "update"),
    "invoice": ("list", "read", "update"),
    "token": ("list", "read", "issue", "revoke"),
    "webhook": ("list", "create", "update", "delete"),
    "feedback": ("create",),
    "identity": ("read",),
    "partner": ("mint_token",),
}


def make_plural(resource: str) -> str:
    """`experiments` of `experiment`: the other spelling that restrictions may use."""
    return "identities" if resource == "identity" else f"{resource}s"


def is_permitted(role: str, action: str, resource: str) -> bool:
    """Whether a role allows it (contract 5.3: members read and write, viewers read, partners also mint)."""
    if resource == PARTNER_ONLY:
        return role == "partner"
    return role != "viewer" or action in READING


def of_role(role: str) -> list[tuple[str, str]]:
    """The role's capabilities as (resource, action), in a fixed order."""
    return [
        (resource, action)
        for resource, actions in CAPABILITIES.items()
        for action in actions
        if is_permitted(role, action, resource)
    ]


_RFC_3339: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})",
    re.IGNORECASE,
)
_SINGULAR: Final = {make_plural(resource): resource for resource in RESOURCES}


def _one_of(known: tuple[str, ...]) -> Callable[[str], str]:
    def check(value: str) -> str:
        if value not in known:
            raise ValueError(f"{value!r} is not known; known are {', '.join(known)}")
        return value

    return check


def _make_singular(value: str) -> str:
    """Restrictions name resources as routes do; the plural spelling means the same."""
    return _SINGULAR.get(value, value)


def _read_moment(value: Any) -> Any:
    """RFC 3339 text (contract 1) as a token keeps it: whole seconds of UTC, rounded down."""
    if not isinstance(value, str):
        return value
    if not _RFC_3339.fullmatch(value):
        raise ValueError("a time is written as 2026-03-01T09:30:00Z, with T and a zone")
    return times.parse(value.upper()).replace(microsecond=0)


Moment = Annotated[datetime, BeforeValidator(_read_moment)]
_Resource = Annotated[
    str,
    AfterValidator(_make_singular),
    AfterValidator(_one_of(RESOURCES)),
]
_Action = Annotated[str, AfterValidator(_one_of(ACTIONS))]
_Method = Annotated[str, AfterValidator(_one_of(tuple(PaymentMethod)))]
# An empty list would make a token that can do nothing at all, which is hardly intended.
_NonEmpty: Final = Field(min_length=1, max_length=100)
Label = Annotated[str, Field(min_length=1, max_length=NAME_MAX)]


class Restrictions(Body):
    """`attenuation` (contract 2.13). A field that is left out, null or false restricts nothing."""

    allowed_actions: Annotated[list[_Action], _NonEmpty] | None = None
    allowed_org_ids: Annotated[list[UUID], _NonEmpty] | None = None
    allowed_resources: Annotated[list[_Resource], _NonEmpty] | None = None
    expires_at: Moment | None = None
    non_destructive: bool | None = None
    payment_policy: Annotated[list[_Method], _NonEmpty] | None = None
    read_only: bool | None = None


class AttenuateToken(Body):
    """POST /tokens/attenuate (contract 4.6)."""

    attenuation: Restrictions
    name: Label
    token: str
    attenuated_parent_token_id: UUID | None = None


_CHECKS: Final = {
    "allowed_actions": "check if action($action), {allowed_actions}.contains($action);",
    "allowed_org_ids": "check if org($org), {allowed_org_ids}.contains($org);",
    "allowed_resources": "check if resource($resource), {allowed_resources}.contains($resource);",
    "expires_at": "check if time($time), $time < {expires_at};",
    "non_destructive": "check if destructive(false);",
    # Only a request that chooses or uses a payment method is held to the policy, whose order is the preference.
    "payment_policy": "check if payment(false) or payment_method($method), {payment_policy}.contains($method);",
    "read_only": "check if action($action), {reading}.contains($action);",
}


def make_checks(restrictions: Restrictions) -> tuple[str, dict[str, Any]]:
    """The block's text and the values of its parameters; each restriction is one check."""
    active_restrictions = {name: value for name in _CHECKS if (value := getattr(restrictions, name))}
    values: dict[str, Any] = {
        name: set(map(str, value)) if name.startswith("allowed_") else value
        for name, value in active_restrictions.items()
        if f"{{{name}}}" in _CHECKS[name]
    }
    if restrictions.read_only:
        values["reading"] = set(READING)
    return "\n".join(_CHECKS[name] for name in active_restrictions), values


def make_spec(restrictions: Restrictions) -> dict[str, Any]:
    """`attenuation_spec` of the token's record: the restrictions as requested."""
    kept = restrictions.model_dump(mode="json", exclude_none=True)
    if restrictions.expires_at is not None:
        kept["expires_at"] = times.stamp(restrictions.expires_at)
    return kept


def make_facts(
    *, action: str, resource: str, destructive: bool, lab_time: datetime, method: str | None
) -> tuple[str, dict[str, Any]]:
    """What a request is, for the checks of its token: action on a resource (singular) at `lab_time`.

    `destructive` requests take something away for good; `method` is the payment method that one chooses or uses.
    """
    values: dict[str, Any] = {
        "action": action,
        "resource": resource,
        "resources": make_plural(resource),
        "destructive": destructive or action in DESTRUCTIVE,
        "time": lab_time,
        "payment": method is not None,
    }
    code = (
        "action({action}); resource({resource}); resource({resources}); destructive({destructive});"
        " time({time}); payment({payment});"
    )
    if method is not None:
        values["method"] = method
        code += " payment_method({method});"
    return code, values
