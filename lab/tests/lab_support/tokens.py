"""Tokens in tests: attenuating online and offline, and taking a Biscuit apart."""

import base64
import re
from typing import Any

from biscuit_auth import Biscuit, BlockBuilder, PublicKey

from assay_lab.service.core import LabCore
from assay_lab.tokens import permissions


def online(core: LabCore, token: str, parent: str | None = None, **restrictions: Any) -> dict[str, Any]:
    """POST /tokens/attenuate with the token itself: `id` and `token`."""
    body: dict[str, Any] = {"attenuation": restrictions, "name": "less", "token": token}
    if parent is not None:
        body["attenuated_parent_token_id"] = parent
    answer: dict[str, Any] = core.request("POST", "/tokens/attenuate", token=token, json_body=body).body
    return answer


def offline(core: LabCore, token: str, **restrictions: Any) -> str:
    """The same without the service, with the library of tokens and the checks that the lab documents."""
    code, values = permissions.make_checks(
        permissions.Restrictions.model_validate(restrictions, strict=False)
    )
    start, body = re.split("(?=[A-Z])", token, maxsplit=1)  # a slug has no capital letter
    biscuit = Biscuit.from_base64(body, PublicKey(core.lab.tokens.public_key))
    return start + biscuit.append(BlockBuilder(code, values)).to_base64()


def split(token: str, slug: str = "lab") -> tuple[str, bytes]:
    """What stands before the Biscuit, and its bytes."""
    before, _, body = token.partition(f"_{slug}")
    return f"{before}_{slug}", base64.urlsafe_b64decode(body)


def join(before: str, body: bytes) -> str:
    """The opposite of `split`."""
    return before + base64.urlsafe_b64encode(body).decode()
