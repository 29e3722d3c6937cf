"""Strict schemas of the bodies about tokens and partners (contract 2.13 and 4.6).

Where the contract shows no values, these are the lab's own; a refusal names them.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Final, Literal
from uuid import UUID

from pydantic import AfterValidator, Field

from prefect_assay.lab.kernel.bodies import Body, documented
from prefect_assay.lab.tokens.roles import ACTIONS, RESOURCES, plural
from prefect_assay.models.vocabulary import PaymentMethod

NAME_MAX: Final = 200
EMAIL: Final = r"^[^@\s\"<>\x00-\x1f]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?$"

_SINGULAR: Final = {plural(resource): resource for resource in RESOURCES}


def _one_of(known: tuple[str, ...]) -> Callable[[str], str]:
    def check(value: str) -> str:
        if value not in known:
            raise ValueError(f"{value!r} is not known; known are {', '.join(known)}")
        return value

    return check


def _singular(value: str) -> str:
    """Restrictions name resources as routes do; the plural spelling means the same."""
    return _SINGULAR.get(value, value)


def _whole(value: datetime) -> datetime:
    """As a token keeps it: whole seconds of UTC, rounded down. RFC 3339 needs an offset (contract 1)."""
    if value.tzinfo is None:
        raise ValueError("a time needs a zone, such as Z")
    try:
        return value.astimezone(UTC).replace(microsecond=0)
    except OverflowError as error:
        raise ValueError("lies outside the calendar") from error


Moment = Annotated[datetime, AfterValidator(_whole)]
_Resource = Annotated[
    str,
    AfterValidator(_singular),
    AfterValidator(_one_of(RESOURCES)),
    documented(enum=[*RESOURCES, *(name for name in _SINGULAR if name not in RESOURCES)]),
]
_Action = Annotated[str, AfterValidator(_one_of(ACTIONS)), documented(enum=list(ACTIONS))]
_Method = Annotated[str, AfterValidator(_one_of(tuple(PaymentMethod))), documented(enum=list(PaymentMethod))]
# An empty list would make a token that can do nothing at all, which nobody asks for on purpose.
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


class NewOrganization(Body):
    """A customer that the service does not know yet."""

    type: Literal["new_org"]
    name: Label


class ExistingOrganization(Body):
    """An organisation that this partner has onboarded."""

    type: Literal["existing_org"]
    id: UUID


class NewUser(Body):
    """The user who will hold the token."""

    email: Annotated[str, Field(pattern=EMAIL)]
    name: Label | None = None


class MintToken(Body):
    """POST /partners/mint-token (contract 4.6)."""

    # Of its fields the contract shows only `org.type` and `expires_at`.

    org: Annotated[NewOrganization | ExistingOrganization, Field(discriminator="type")]
    user: NewUser
    role: Literal["member", "viewer"] = "member"
    name: Label | None = None
    expires_at: Moment | None = None
