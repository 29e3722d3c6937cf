"""One call of the API as data: which handler answers which path, and what a caller needs to be allowed.

The web layer, the tool endpoint and `openapi.json` are all made from these.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import BaseModel

from prefect_assay.lab.kernel.bodies import Body
from prefect_assay.lab.requests.core import Answer, Call
from prefect_assay.lab.requests.lists import Listing
from prefect_assay.lab.tokens.roles import READING, Action, Resource


@dataclass(frozen=True, slots=True)
class Route:
    """One call of the API.

    Attributes:
        method: HTTP method.
        path: relative to /api/v1.
        handler: answers the call.
        summary: one line for people.
        action: what the caller does; tokens are checked against it.
        resource: to what; tokens are checked against it.
        body: schema of the request body.
        parameters: query parameters of a list.
        answers: status and shape of every success; None is an answer without a JSON shape.
        destructive: takes something away for good; a `non_destructive` token may not call it.
        open: needs no token.
        partner: exists for partner tokens only, in `openapi.json` too (contract 1).
        media_type: of a success.
        refuses: statuses and error shapes beyond the usual ones: 401 and 403 (a token is needed), 404 (an id in
            the path), 400 (parameters or a body), 415 (a body), 429 and 500. Another shape for a usual one, too.
        listing: what a list can be filtered and sorted by.
        headers: request headers that it reads, beyond the token's.
        description: a paragraph for people, in Markdown.
    """

    method: str
    path: str
    handler: Callable[[Call], Answer]
    summary: str
    action: Action
    resource: Resource
    body: type[Body] | None = None
    parameters: tuple[str, ...] = ()
    answers: Mapping[int, type[BaseModel] | None] = field(default_factory=lambda: {200: None})
    destructive: bool = False
    open: bool = False
    partner: bool = False
    media_type: str = "application/json"
    refuses: Mapping[int, type[BaseModel]] = field(default_factory=dict)
    listing: Listing | None = None
    headers: tuple[str, ...] = ()
    description: str = ""

    @property
    def writes(self) -> bool:
        """Whether it changes anything."""
        return self.action not in READING


PAGE: Final = ("limit", "offset", "filter", "search", "sort")


def listed(
    path: str,
    handler: Callable[[Call], Answer],
    summary: str,
    resource: Resource,
    shape: type[BaseModel],
    listing: Listing,
    *more: str,
    description: str = "",
) -> Route:
    """The GET of a list, with the parameters of every list and those of this one."""
    return Route(
        "GET",
        path,
        handler,
        summary,
        "list",
        resource,
        parameters=(*PAGE, *more, *listing.plain),
        answers={200: shape},
        listing=listing,
        description=description,
    )


def shown(
    path: str,
    handler: Callable[[Call], Answer],
    summary: str,
    resource: Resource,
    shape: type[BaseModel],
    *,
    description: str = "",
) -> Route:
    """The GET of one record."""
    return Route(
        "GET", path, handler, summary, "read", resource, answers={200: shape}, description=description
    )
