"""What partners mint tokens for (contract 4.6). Of the request the contract shows `org.type` and `expires_at` only.

The other fields are named as the local lab names them; `extra` carries what a deployment wants besides.
"""

from datetime import datetime
from typing import Any, Literal

from pydantic import AwareDatetime, Field, SecretStr

from prefect_assay.models.base import Maybe, Model, WireModel


class NewOrg(Model):
    """A customer that the service does not know yet: the organization is made with its first user."""

    type: Literal["new_org"] = "new_org"
    name: str
    extra: dict[str, Any] = Field(default_factory=dict)


class ExistingOrg(Model):
    """An organization that this partner has onboarded, by its uuid."""

    type: Literal["existing_org"] = "existing_org"
    id: str
    extra: dict[str, Any] = Field(default_factory=dict)


class MintRequest(Model):
    """POST /partners/mint-token.

    Attributes:
        org: whom the user belongs to.
        email: of the new user; an existing one is refused with 409.
        user_name: of the new user.
        role: of the token, `member` or `viewer`.
        name: label of the token.
        expires_at: with a time zone; 90 days from now when it is left out.
        extra: further fields of the body.
    """

    org: NewOrg | ExistingOrg
    email: str
    user_name: str | None = None
    role: str | None = None
    name: str | None = None
    expires_at: AwareDatetime | None = None
    extra: dict[str, Any] = Field(default_factory=dict)

    def wire(self) -> dict[str, Any]:
        """The JSON body: only what is set."""
        org = self.org.model_dump(mode="json", exclude={"extra"}) | self.org.extra
        user = {"email": self.email} | ({"name": self.user_name} if self.user_name is not None else {})
        whole = self.model_dump(mode="json", exclude_none=True, include={"role", "name", "expires_at"})
        return {"org": org, "user": user} | whole | self.extra


class MintedToken(WireModel):
    """A token as it is handed out, once. Its value is secret."""

    token: SecretStr
    id: Maybe[str] = None
    user_id: Maybe[str] = None
    organization_id: Maybe[str] = None
    role: Maybe[str] = None
    expires_at: Maybe[datetime] = None
