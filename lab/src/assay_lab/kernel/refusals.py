"""The refusals of the lab (contract 7), and the base of strict request bodies. Knows no HTTP library."""

import random
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict

from assay_lab.vocabulary import MACHINE_RAILS, PaymentMethod

# Ids of requests are not secrets; one of the operating system's numbers each would take as long as a query.
_numbers = random.Random()  # noqa: S311 - as above


class Refusal(Exception):
    """A request that is answered with an error status."""

    def __init__(
        self, status: int, message: str, *, code: str | None = None, extra: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.extra = dict(extra or {})

    @classmethod
    def of_all(cls, status: int, messages: Sequence[str], *, code: str | None = None) -> "Refusal":
        """One refusal for several errors (contract 2.2: validation errors are accumulated)."""
        return cls(status, "; ".join(messages), code=code)


def make_request_id() -> str:
    """The id of one request, which every error body names (contract 2.12)."""
    return f"req_{_numbers.getrandbits(96):024x}"


def not_found(what: str) -> Refusal:
    """A 404 that does not reveal whether it exists elsewhere (contract 7: not found or access denied)."""
    return Refusal(404, f"{what} not found, or this token has no access to it")


def database_unavailable() -> Refusal:
    """The 503 of a call that says whether the database answers (service shapes, Tokens and identity)."""
    return Refusal(503, "the database does not answer", extra={"db": "unavailable"})


class Body(BaseModel):
    """A request body: strict types, no unknown fields."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


def _require_machine_rail(word: str) -> str:
    if word not in MACHINE_RAILS:
        words = (repr(method.value) for method in PaymentMethod if method in MACHINE_RAILS)
        raise ValueError(f"Input should be {' or '.join(words)}")
    return word


MachineRail = Annotated[str, AfterValidator(_require_machine_rail)]
"""The word of a machine rail in a body."""


def accept_integral(value: Any) -> Any:
    """`3.0` is the integer 3 (JSON Schema)."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
