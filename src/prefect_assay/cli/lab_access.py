"""The lab of a stack: how it is started, its tokens, and its control surface (`/_sim`)."""

import contextlib
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
from pydantic import SecretStr

from prefect_assay.cli.ports import HOST
from prefect_assay.errors import ConfigurationError


class LabAccess:
    """One lab on loopback.

    Attributes:
        address: base address, without /api/v1.
        member_token: a token that may order.
        viewer_token: a token that may only read.
        sim_token: opens the control surface.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.member_token = SecretStr(f"assay_demo{secrets.token_urlsafe(24)}")
        self.viewer_token = SecretStr(f"assay_demo{secrets.token_urlsafe(24)}")
        self.sim_token = SecretStr(secrets.token_urlsafe(24))

    def process(self, port: int, database: Path, env: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        """Arguments for the interpreter and the environment of the lab's process."""
        arguments = ["-m", "prefect_assay.lab", "--host", HOST, "--port", str(port)]
        arguments += ["--database", str(database), "--clock", "manual", "--allow-http-webhooks"]
        tokens = {
            "PREFECT_ASSAY_LAB_MEMBER_TOKEN": self.member_token.get_secret_value(),
            "PREFECT_ASSAY_LAB_VIEWER_TOKEN": self.viewer_token.get_secret_value(),
            "PREFECT_ASSAY_LAB_SIM_TOKEN": self.sim_token.get_secret_value(),
        }
        return arguments, {**env, **tokens}

    def answers(self) -> bool:
        """Whether the lab is up."""
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"{self.address}/openapi.json", timeout=5, trust_env=False).is_success
        return False

    def sim(self, method: str, path: str, **arguments: Any) -> Any:
        """One call of the control surface; returns its JSON.

        Raises:
            ConfigurationError: the lab refuses.
        """
        answer = httpx.request(
            method,
            f"{self.address}/_sim{path}",
            headers={"Authorization": f"Bearer {self.sim_token.get_secret_value()}"},
            timeout=120,
            trust_env=False,
            **arguments,
        )
        if answer.is_error:
            raise ConfigurationError(
                f"the lab refuses {method} /_sim{path}: {answer.status_code} {answer.text}"
            )
        return answer.json()

    def advance(self, days: float) -> Any:
        """Let lab days pass; returns when everything due has happened and every webhook was delivered."""
        return self.sim("POST", "/clock/advance", json={"days": days})
