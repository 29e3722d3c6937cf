"""The service itself: two words that each deployment spells its own way (contract 1).

This package uses the neutral words `provider` and `Service`. Client and lab convert at the edge: field names
(`<provider>_invoice_url`) and header names (`X-<Service>-Signature`).
"""

from typing import Any, Final

from pydantic import Field

from prefect_assay.service.models.base import Model

NEUTRAL_PROVIDER: Final = "provider"
NEUTRAL_SERVICE: Final = "Service"

# A local lab puts this header, with exactly this value, on every answer. It is the lab's own: the contract has no such
# header, so a service without it is live.
SIMULATED_HEADER: Final = "Assay-Simulated"
SIMULATED_VALUE: Final = "true"

# Keys below these are the user's own, such as sequence names: a design called `<provider>_1` keeps its name.
USER_KEYED: Final = frozenset({"sequences", "parameters", "metadata", "summary", "headers"})


class WireWords(Model):
    """How one deployment spells the payment provider's and the service's name."""

    provider: str = Field(default=NEUTRAL_PROVIDER, pattern=r"^[a-z][a-z0-9]*$")
    service: str = Field(default=NEUTRAL_SERVICE, pattern=r"^[A-Za-z][A-Za-z0-9]*$")

    def header(self, suffix: str) -> str:
        """`Signature` becomes `X-Service-Signature` in this deployment's spelling."""
        return f"X-{self.service}-{suffix}"

    def to_wire(self, body: Any) -> Any:
        """Neutral field names to this deployment's, at any depth but not inside the user's own data."""
        return _rename(body, f"{NEUTRAL_PROVIDER}_", f"{self.provider}_")

    def from_wire(self, body: Any) -> Any:
        """This deployment's field names to neutral ones, at any depth but not inside the user's own data."""
        return _rename(body, f"{self.provider}_", f"{NEUTRAL_PROVIDER}_")


def _rename(value: Any, old: str, new: str) -> Any:
    if old == new:
        return value
    if isinstance(value, dict):
        return {
            (new + key[len(old) :] if isinstance(key, str) and key.startswith(old) else key): (
                item if key in USER_KEYED else _rename(item, old, new)
            )
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_rename(item, old, new) for item in value]
    return value
