"""The seven restrictions of contract 2.13 as checks of a Biscuit block, and the facts that requests offer to them.

The text of the checks stands once more in the client, which must not know the lab; a test compares the two. The
facts are documented (docs/tokens.md), because whoever attenuates offline writes checks on them.
"""

from datetime import datetime
from typing import Any, Final

from prefect_assay.lab.kernel import times
from prefect_assay.lab.tokens.roles import DESTRUCTIVE, READING, plural
from prefect_assay.lab.tokens.schemas import Restrictions

_ACTIONS: Final = "check if action($action), {allowed_actions}.contains($action);"
_ORGS: Final = "check if org($org), {allowed_org_ids}.contains($org);"
_RESOURCES: Final = "check if resource($resource), {allowed_resources}.contains($resource);"
_EXPIRES: Final = "check if time($time), $time < {expires_at};"
_NON_DESTRUCTIVE: Final = "check if destructive(false);"
# Only a request that chooses or uses a payment method is held to the policy.
_POLICY: Final = "check if payment(false) or payment_method($method), {payment_policy}.contains($method);"
_READ_ONLY: Final = "check if action($action), {reading}.contains($action);"


def checks(wanted: Restrictions) -> tuple[str, dict[str, Any]]:
    """The block's text and the values of its parameters; each restriction is one check."""
    code: list[str] = []
    values: dict[str, Any] = {}
    if wanted.allowed_actions is not None:
        code.append(_ACTIONS)
        values["allowed_actions"] = set(wanted.allowed_actions)
    if wanted.allowed_org_ids is not None:
        code.append(_ORGS)
        values["allowed_org_ids"] = {str(org_id) for org_id in wanted.allowed_org_ids}
    if wanted.allowed_resources is not None:
        code.append(_RESOURCES)
        values["allowed_resources"] = set(wanted.allowed_resources)
    if wanted.expires_at is not None:
        code.append(_EXPIRES)
        values["expires_at"] = wanted.expires_at
    if wanted.non_destructive:
        code.append(_NON_DESTRUCTIVE)
    if wanted.payment_policy is not None:
        code.append(_POLICY)
        values["payment_policy"] = list(wanted.payment_policy)  # an array: its order is the preference
    if wanted.read_only:
        code.append(_READ_ONLY)
        values["reading"] = set(READING)
    return "\n".join(code), values


def spec(wanted: Restrictions) -> dict[str, Any]:
    """`attenuation_spec` of the token's record: what was asked for."""
    kept = wanted.model_dump(mode="json", exclude_none=True)
    if wanted.expires_at is not None:
        kept["expires_at"] = times.stamp(wanted.expires_at)
    return kept


def facts(
    *, action: str, resource: str, destructive: bool, at: datetime, method: str | None
) -> tuple[str, dict[str, Any]]:
    """What a request is, for the checks of its token: action on a resource (singular) at lab time `at`.

    `destructive` requests take something away for good; `method` is the payment method that one chooses or uses.
    """
    values: dict[str, Any] = {
        "action": action,
        "resource": resource,
        "resources": plural(resource),
        "destructive": destructive or action in DESTRUCTIVE,
        "time": at,
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
