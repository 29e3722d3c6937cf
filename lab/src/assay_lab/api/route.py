"""One call of the API as data. The web layer, the tools and `openapi.json` are made from it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from pydantic import BaseModel

from assay_lab.kernel.refusals import Body
from assay_lab.requests.core import Answer, Call
from assay_lab.requests.lists import Listing
from assay_lab.tokens.permissions import READING, Action, Resource

Handler = Callable[[Call], Answer]
Shape = type[BaseModel]


@dataclass(frozen=True, slots=True)
class Route:
    """One call of the API; `path` is relative to /api/v1."""

    method: str
    path: str
    handler: Handler
    summary: str
    needs: tuple[Action, Resource]  # the action and the resource that the token must permit
    body: type[Body] | None = None
    parameters: tuple[str, ...] = ()  # query parameters of a list
    # Status and shape of every success; None for one without a JSON body
    answers: Mapping[int, Shape | None] = field(default_factory=lambda: {200: None})
    destructive: bool = False  # forbidden to a `non_destructive` token
    open: bool = False  # needs no token
    partner: bool = False  # for partner tokens only, in `openapi.json` too (contract 1)
    media_type: str = "application/json"  # of a success
    # Statuses and error shapes beyond the usual ones (`refusals`), or another shape for a usual one
    refuses: Mapping[int, Shape] = field(default_factory=dict)
    listing: Listing | None = None  # what a list can be filtered and sorted by
    headers: tuple[str, ...] = ()  # request headers it reads, beyond the token's
    description: str = ""  # a paragraph for people, in Markdown

    @property
    def action(self) -> Action:
        """What the call does."""
        return self.needs[0]

    @property
    def resource(self) -> Resource:
        """What the call is about."""
        return self.needs[1]

    @property
    def writes(self) -> bool:
        """Whether it changes anything."""
        return self.action not in READING


get = partial(Route, "GET")
post = partial(Route, "POST")
patch = partial(Route, "PATCH")
delete = partial(Route, "DELETE")
PAGE: Final = ("limit", "offset", "filter", "search", "sort")


def collection(
    path: str,
    handler: Handler,
    summary: str,
    resource: Resource,
    shape: Shape,
    listing: Listing,
    *more: str,
    description: str = "",
) -> Route:
    """The GET of a list; `more` are query parameters beyond those of every list."""
    return get(
        path,
        handler,
        summary,
        ("list", resource),
        parameters=(*PAGE, *more, *listing.plain),
        answers={200: shape},
        listing=listing,
        description=description,
    )


def record(path: str, handler: Handler, summary: str, resource: Resource, shape: Shape, **more: Any) -> Route:
    """The GET of one record; `more` are further fields of the route."""
    return get(path, handler, summary, ("read", resource), answers={200: shape}, **more)
