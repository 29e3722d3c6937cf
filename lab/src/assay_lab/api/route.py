"""One call of the API as data: who answers it, and what its token must permit. What it takes and answers is in `openapi.yaml`."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from assay_lab.requests.core import Answer, Call
from assay_lab.tokens.permissions import READING, Action, Resource

Handler = Callable[[Call], Answer]


@dataclass(frozen=True, slots=True)
class Route:
    """One call of the API; `path` is relative to /api/v1. A token must permit `action` on `resource`."""

    method: str
    path: str
    handler: Handler
    action: Action
    resource: Resource
    destructive: bool = False  # forbidden to a `non_destructive` token
    open: bool = False  # needs no token
    partner: bool = False  # for partner tokens only, in `openapi.json` too (contract 1)

    @property
    def writes(self) -> bool:
        """Whether it changes anything."""
        return self.action not in READING


get = partial(Route, "GET")
post = partial(Route, "POST")
patch = partial(Route, "PATCH")
delete = partial(Route, "DELETE")
