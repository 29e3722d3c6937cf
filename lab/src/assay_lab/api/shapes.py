"""Shapes of answers: their base, the error bodies (contract 2.12 and 7), identity, tokens and webhooks (contract 4.6).

Shapes describe answers in `openapi.json`, and the tests hold answers to them; nothing is parsed with them. A field
without a default is always there. `x: T | None = None` may be null or absent, `x: T = absent()` absent but never null.
"""

from datetime import datetime
from typing import Annotated, Any, Generic, Literal, TypeVar
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, RootModel

Item = TypeVar("Item")

Url = Annotated[str, Field(json_schema_extra={"format": "uri"})]
Cents = Annotated[int, Field(ge=0, description="US cents, excluding VAT.")]
Count = Annotated[int, Field(ge=0)]
Moment = AwareDatetime


class Shape(BaseModel):
    """An answer of the service, in neutral words."""

    model_config = ConfigDict(extra="forbid", defer_build=True)


class Page(Shape, Generic[Item]):
    """One page of a list (contract 4.1)."""

    items: list[Item]
    total: Count = Field(description="Matches across all pages.")
    count: Count = Field(description="Items in this answer.")
    offset: Count = Field(description="As asked for.")


def absent(description: str | None = None) -> Any:
    """A field that an answer may leave out, and never sets to null."""
    return Field(default=None, description=description)


class NamedTarget(Shape):
    """A target by its name and its id in the catalog."""

    name: str
    target_catalog_id: UUID


Kind = Literal[
    "customer_quote_cap",
    "rate_limited",
    "upstream_server_error",
    "missing_customer",
    "missing_product",
    "other",
]


class Error(Shape):
    """A refusal. Several validation findings arrive together, separated by semicolons."""

    error: Annotated[str, Field(min_length=1, description="What is wrong, for people.")]
    request_id: Annotated[str, Field(pattern="^req_", description="As in the header x-request-id.")]
    code: str = absent("Machine-readable, where there is one, such as payment_method_selector_conflict.")


class SubmitError(Error):
    """A submission that is not possible now (service shapes, Experiments)."""

    error_kind: Kind = absent("Why, for machines.")
    hint: str = absent("What to do about it.")


class OrderError(Error):
    """An order that failed; after its invoice was made it names what exists (contract 4.2, create rule 6)."""

    experiment_id: UUID = absent("The experiment that was created all the same.")
    provider_invoice_id: str = absent("Its invoice, which is void.")
    provider_hosted_invoice_url: Url = absent()


class Membership(Shape):
    """An organisation that the token belongs to."""

    id: UUID
    name: str
    role: str | None = None
    active: bool


class Identity(Shape):
    """Who a token is."""

    user_id: UUID | None = None
    organizations: list[Membership]
    active_organization_id: UUID | None = None
    permissions: list[str]
    token_expires_at: Moment | None = None


class Health(Shape):
    """The service answers."""

    status: Literal["ok"]


class DatabaseHealth(Health):
    """The service and its database answer."""

    db: Literal["ok"]


class DatabaseAway(Error):
    """503: the database does not answer."""

    db: Literal["unavailable"]


class FeedbackReceipt(Shape):
    """Feedback has arrived."""

    reference: Annotated[str, Field(pattern="^fb_", description="Names this submission.")]
    message: str


class AttenuationSpec(Shape):
    """`attenuation_spec`: the restrictions that one attenuation asked for (contract 2.13)."""

    allowed_actions: list[str] | None = None
    allowed_org_ids: list[UUID] | None = None
    allowed_resources: list[str] | None = None
    expires_at: Moment | None = None
    non_destructive: bool | None = None
    payment_policy: list[str] | None = None
    read_only: bool | None = None


class TokenRecord(Shape):
    """What is kept of a token. Root and parent are null of a root token."""

    id: UUID
    name: str
    kind: Literal["portal", "oauth", "minted", "start", "attenuated"]
    parent_token_id: UUID | None
    root_token_id: UUID | None
    attenuation_spec: AttenuationSpec | None
    created_at: Moment
    expires_at: Moment


class TokenPage(Page[TokenRecord]):
    """Tokens of an organisation."""


class AttenuatedToken(Shape):
    """The restricted token, shown this once."""

    id: UUID
    token: str


class Revocation(Shape):
    """A family of tokens that is dead from now on."""

    token_id: UUID
    revoked_at: Moment
    children_revoked: Count


class MintedToken(Shape):
    """A new user's token, shown this once."""

    id: UUID
    token: str
    user_id: UUID
    organization_id: UUID
    role: Literal["member", "viewer"]
    expires_at: Moment


class Webhook(Shape):
    """An organisation's webhook. The secret is write-only: `secret_set` says whether there is one."""

    id: UUID
    url: str
    secret_set: bool
    headers: dict[str, str]
    enabled: bool
    created_at: datetime
    updated_at: datetime


class Webhooks(RootModel[list[Webhook]]):
    """All of them, oldest first: a plain array without paging."""
