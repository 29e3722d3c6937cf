"""Faults that tests set on API requests through the control surface (lab/docs/lab.md).

The most important fault is `lose_answer`: the request is handled completely and its answer never arrives.
"""

from fnmatch import fnmatchcase
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import Field

from assay_lab.kernel.faults import CountedFault
from assay_lab.kernel.settings import API_PREFIX

Action = Literal[
    "status",
    "delay",
    "reset",
    "lose_answer",
    "late_answer",
    "truncate",
    "error_after",
    "partial_create",
    "post_invoice_failure",
]
ACTIONS: Final = get_args(Action)
NEVER_HANDLED: Final = frozenset({"status", "reset"})
NEVER_ANSWERED: Final = frozenset({"reset", "lose_answer"})
BREAKS_ORDER: Final = frozenset({"partial_create", "post_invoice_failure"})

Seconds = Annotated[float, Field(ge=0, le=600)]


class Fault(CountedFault):
    """What happens to requests that match `method` and `path` (with `*`, with or without `/api/v1`)."""

    action: Action
    method: str = "*"
    path: str = "*"
    # Of `status`, `error_after` and `post_invoice_failure`; default 503 or 500
    status: Annotated[int, Field(ge=200, le=599)] | None = None
    seconds: Seconds = 0.0  # the wait of `delay` and `late_answer`
    # Retry-After header of an error answer, in seconds
    retry_after: Annotated[float, Field(ge=0, le=86_400)] | None = None
    error: str = "fault asked for by the test"
    # Further fields of an error body, such as `error_kind`
    fields: Annotated[dict[str, Any], Field(default_factory=dict)]
    # How much of the body `truncate` sends; default half
    keep_bytes: Annotated[int, Field(ge=0)] | None = None

    def meets(self, **names: Any) -> bool:
        """Whether it is meant for a request."""
        method, path = names.pop("method"), names.pop("path")
        return self.method in ("*", method) and path_matches(path, self.path) and super().meets(**names)


def path_matches(path: str, pattern: str) -> bool:
    """Whether a pattern with `*` matches a path, with or without `/api/v1` in front."""
    return any(fnmatchcase(text, pattern) for text in (path, path.removeprefix(API_PREFIX)))
