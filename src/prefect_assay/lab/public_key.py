"""Publishes the key that the lab's tokens are signed with, for whoever attenuates them offline.

The contract names no place for it. A well-known path outside the API needs no token, and no place in openapi.json.
"""

from fastapi import APIRouter, Request

from prefect_assay.lab.service import LabCore

router = APIRouter()


@router.get("/token-key")
async def token_key(request: Request) -> dict[str, str]:
    """`{public_key: "ed25519/<hex>", token_prefix}`."""
    core: LabCore = request.app.state.core
    return {
        "public_key": core.lab.tokens.public_key,
        "token_prefix": core.lab.settings.token_prefix,
    }
