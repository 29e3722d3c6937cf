"""Two words that each deployment of the service spells its own way (contract 1), and the mark of a simulated one.

The lab writes its records with the neutral words `provider` and `Service`, and converts at the edge.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from assay_lab.errors import ConfigurationError

NEUTRAL_PROVIDER: Final = "provider"
NEUTRAL_SERVICE: Final = "Service"

# On every answer of a lab. The contract has no such header, so a service without it is live.
SIMULATED_HEADER: Final = "Assay-Simulated"
SIMULATED_VALUE: Final = "true"

# Names below these fields are the user's own.
_USERS_OWN: Final = frozenset({"sequences", "parameters", "metadata", "summary", "headers", "json_body"})


@dataclass(frozen=True, slots=True)
class WireWords:
    """How a deployment spells the payment provider's name in fields, and the service's in headers."""

    provider: str = NEUTRAL_PROVIDER
    service: str = NEUTRAL_SERVICE

    def __post_init__(self) -> None:
        """Refuse words that are not part of a field's or header's name."""
        if not re.fullmatch(r"[a-z][a-z0-9]*", self.provider):
            raise ConfigurationError(f"provider word {self.provider!r}: use lower-case letters and digits")
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*", self.service):
            raise ConfigurationError(f"service word {self.service!r}: use letters and digits")

    def header(self, suffix: str) -> str:
        """The full name of a header, such as `X-Service-Signature` for `Signature`."""
        return f"X-{self.service}-{suffix}"

    def to_wire(self, body: Any) -> Any:
        """A body with the neutral names of fields in this deployment's spelling."""
        return body if self.provider == NEUTRAL_PROVIDER else _respell_value(body, self.provider)


def _respell_value(value: Any, provider: str) -> Any:
    if isinstance(value, list):
        return [_respell_value(item, provider) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        _respell_name(name, provider): item if name in _USERS_OWN else _respell_value(item, provider)
        for name, item in value.items()
    }


def _respell_name(name: Any, provider: str) -> Any:
    if isinstance(name, str) and name.startswith(f"{NEUTRAL_PROVIDER}_"):
        return provider + name.removeprefix(NEUTRAL_PROVIDER)
    return name
