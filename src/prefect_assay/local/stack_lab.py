"""The lab of a stack: a `LocalLab` on a process that the stack starts. The one module that needs the package `assay_lab`."""

import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

import httpx

from prefect_assay.errors import ConfigurationError
from prefect_assay.local.loopback import HOST, NO_TLS

try:
    from assay_lab.testing import LocalLab
except ImportError:
    raise ConfigurationError.missing_lab("LocalStack") from None


class StackLab(LocalLab):
    """A `LocalLab` on a process of the stack; its tokens survive a restart."""

    def __init__(self, port: int, database: Path) -> None:
        """Choose address and tokens; nothing is started."""
        self.base_url = f"http://{HOST}:{port}"
        self.token = f"assay_lab{secrets.token_urlsafe(24)}"
        self.viewer_token = f"assay_lab{secrets.token_urlsafe(24)}"
        self.partner_token = f"assay_lab{secrets.token_urlsafe(24)}"
        self.sim_token = secrets.token_urlsafe(24)
        super().__init__(port=port, database=database, token=self.token, sim_token=self.sim_token)

    def arguments(self) -> list[str]:
        """Arguments for the interpreter to start the process."""
        # The stack ends the process, which has no input to watch.
        return [argument for argument in self._command[1:] if argument != "--until-input-ends"]

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """The process's environment: the stack's, and the tokens."""
        return {
            **env,
            "ASSAY_LAB_TOKEN": self.token,
            "ASSAY_LAB_VIEWER_TOKEN": self.viewer_token,
            "ASSAY_LAB_PARTNER_TOKEN": self.partner_token,
            "ASSAY_LAB_SIM_TOKEN": self.sim_token,
        }

    def is_answering(self) -> bool:
        """Whether the process answers at all, with whatever status."""
        with suppress(httpx.TransportError):
            httpx.get(self.base_url, timeout=5, trust_env=False, verify=NO_TLS)
            return True
        return False

    def attach(self) -> Self:
        """Attach to the process that the stack has started."""
        self._connect()
        self.organization_id = self.clock()["organization_id"]
        return self
