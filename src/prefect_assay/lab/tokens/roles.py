"""What a token can be allowed to do: actions, resources and roles (contract 5.3, service shapes, Tokens).

A capability is written `<resource>:<action>`, as the contract's `token:read`. Plain data; knows no token.
"""

from collections.abc import Mapping
from typing import Final, Literal, get_args

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


def plural(resource: str) -> str:
    """`experiments` of `experiment`: the other spelling that restrictions may use."""
    return "identities" if resource == "identity" else f"{resource}s"


def may(role: str, action: str, resource: str) -> bool:
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
        if may(role, action, resource)
    ]
