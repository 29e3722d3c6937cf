"""The one exception with which the lab refuses a request (contract 7). Knows no HTTP library."""

from collections.abc import Mapping, Sequence
from typing import Any


class Refusal(Exception):
    """A request the service answers with an error status.

    Attributes:
        status: HTTP status.
        message: the `error` string.
        code: machine-readable code, where the contract has one.
        extra: further fields of the error body.
    """

    def __init__(
        self, status: int, message: str, *, code: str | None = None, extra: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.extra = dict(extra or {})

    @classmethod
    def of_findings(cls, status: int, findings: Sequence[str], *, code: str | None = None) -> "Refusal":
        """All findings in one answer (contract 2.2: validation errors are accumulated)."""
        return cls(status, "; ".join(findings), code=code)


def not_found(what: str) -> Refusal:
    """404 that does not tell whether it exists elsewhere (contract 7: not found or access denied)."""
    return Refusal(404, f"{what} not found, or this token has no access to it")
