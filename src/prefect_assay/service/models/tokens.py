"""Tokens, their owners, and what partners mint (contract 2.13 and 4.6; service-shapes, Tokens and identity).

A token's text is a secret and stays in `SecretStr`; records carry ids only. Of a mint request the contract shows
`org.type` and `expires_at` only. The other fields have the names of the local lab; `extra` carries further ones.
"""

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field, SecretStr

from prefect_assay.service.models.base import Model, Moment, WireModel
from prefect_assay.service.models.identifiers import Identifier

# An empty list would allow nothing; an omitted field restricts nothing.
_Names = Annotated[tuple[str, ...], Field(min_length=1)]


class Attenuation(Model):
    """Restrictions to add to a token (contract 2.13). A field left out restricts nothing."""

    # Of `list`, `read`, `create`, `update`, `delete`, `issue`, `revoke`, `mint_token`
    allowed_actions: _Names | None = None
    allowed_org_ids: _Names | None = None  # organizations, by UUID
    allowed_resources: _Names | None = None  # such as `experiment` or `result`, in the singular
    # With a time zone. A later one than the token's own changes nothing
    expires_at: AwareDatetime | None = None
    non_destructive: bool | None = None  # refuses what takes something away for good
    payment_policy: _Names | None = None  # payment methods (contract 10), the preferred one first
    read_only: bool | None = None  # only `list` and `read`


class AttenuatedToken(WireModel):
    """The answer of POST /tokens/attenuate: the record's id, and the restricted token, shown this once."""

    id: Identifier
    token: SecretStr


class TokenRecord(WireModel):
    """One row of GET /tokens. `attenuation_spec` stays as the service spells it."""

    id: Identifier
    name: str | None = None
    kind: str | None = None
    parent_token_id: Identifier | None = None
    root_token_id: Identifier | None = None
    attenuation_spec: dict[str, object] | None = None
    created_at: Moment | None = None
    expires_at: Moment | None = None


class Revocation(WireModel):
    """The answer of POST /tokens/revoke: the root of the revoked tokens."""

    token_id: Identifier | None = None
    revoked_at: Moment | None = None
    children_revoked: int | None = None


class Organization(WireModel):
    """An organization the token may act for."""

    id: Identifier
    name: str | None = None
    role: str | None = None
    active: bool | None = None


class Identity(WireModel):
    """The answer of GET /whoami."""

    user_id: Identifier | None = None
    organizations: tuple[Organization, ...] = ()
    active_organization_id: Identifier | None = None
    permissions: tuple[str, ...] = ()
    token_expires_at: Moment | None = None


class NewOrg(Model):
    """A new customer: the organization is created with its first user."""

    type: Literal["new_org"] = "new_org"
    name: str
    extra: dict[str, Any] = Field(default_factory=dict)


class ExistingOrg(Model):
    """An organization that this partner has onboarded, by its uuid."""

    type: Literal["existing_org"] = "existing_org"
    id: str
    extra: dict[str, Any] = Field(default_factory=dict)


class MintRequest(Model):
    """POST /partners/mint-token."""

    org: NewOrg | ExistingOrg  # whom the user belongs to
    email: str  # of the new user; an existing one is refused with 409
    user_name: str | None = None
    role: str | None = None  # of the token, `member` or `viewer`
    name: str | None = None  # label of the token
    expires_at: AwareDatetime | None = None  # with a time zone; 90 days from now when it is left out
    extra: dict[str, Any] = Field(default_factory=dict)  # further fields of the body

    def wire(self) -> dict[str, Any]:
        """The JSON body: only what is set."""
        org = self.org.model_dump(mode="json", exclude={"extra"}) | self.org.extra
        user = {"email": self.email} | ({"name": self.user_name} if self.user_name is not None else {})
        whole = self.model_dump(mode="json", exclude_none=True, include={"role", "name", "expires_at"})
        return {"org": org, "user": user} | whole | self.extra


class MintedToken(WireModel):
    """A minted token; its value is shown once."""

    token: SecretStr
    id: Identifier | None = None
    user_id: Identifier | None = None
    organization_id: Identifier | None = None
    role: str | None = None
    expires_at: Moment | None = None
