"""Tokens and partners (contract 4.6, service shapes)."""

from typing import Final

from prefect_assay.lab.account import handlers as access
from prefect_assay.lab.account import partners
from prefect_assay.lab.routing.route import Route, listed
from prefect_assay.lab.shapes.errors import Error
from prefect_assay.lab.shapes.tokens import AttenuatedToken, MintedToken, Revocation, TokenPage
from prefect_assay.lab.tokens.schemas import AttenuateToken, MintToken

TOKENS: Final = (
    listed(
        "/tokens",
        access.listing,
        "List the organization's tokens, newest first",
        "token",
        TokenPage,
        access.TOKENS,
        description="A flat list of roots and attenuated tokens. Tokens that were revoked are left out.",
    ),
    # Reading is enough: whoever holds a token may hand out less of it (contract 4.6, `token:read`).
    Route(
        "POST",
        "/tokens/attenuate",
        access.attenuate,
        "Make a more restricted token",
        "read",
        "token",
        AttenuateToken,
        answers={201: AttenuatedToken},
        description=(
            "The result has all restrictions of the source and the new ones. The text of the source proves that"
            " the caller holds it. The result is shown this once."
        ),
    ),
    Route(
        "POST",
        "/tokens/revoke",
        access.revoke,
        "Revoke the calling token's whole family",
        "revoke",
        "token",
        answers={200: Revocation},
        destructive=True,
        description=(
            "The root of the calling token and everything attenuated from it stop working at once. A repetition"
            " meets 401, as any other call of a revoked token."
        ),
    ),
)

PARTNERS: Final = (
    Route(
        "POST",
        "/partners/mint-token",
        partners.mint_token,
        "Bring a new user, and mint a token for it",
        "mint_token",
        "partner",
        MintToken,
        answers={201: MintedToken},
        refuses={409: Error},
        partner=True,
        description=(
            "`new_org` makes the customer's organization, whose e-mail domain the service must not know yet;"
            " `existing_org` adds a user to an organization that this partner has onboarded. An e-mail address"
            " that has an account is refused with 409."
        ),
    ),
)
