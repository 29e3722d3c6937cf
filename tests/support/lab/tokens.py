"""Attenuating a lab's token with the client, without the lab."""

from typing import Any

from pydantic import SecretStr

from assay_lab.service.core import LabCore
from prefect_assay.service.client import attenuate_offline
from prefect_assay.service.models.tokens import Attenuation


def offline(core: LabCore, token: str, **restrictions: Any) -> str:
    """The token that may do less."""
    made = attenuate_offline(SecretStr(token), Attenuation(**restrictions), core.lab.tokens.public_key)
    return made.get_secret_value()
