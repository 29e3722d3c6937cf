"""The one shape of every list request (contract 4.1): paging, filter, search, sort and tests of single fields."""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import TypedDict, TypeVar

from pydantic import BaseModel

from prefect_assay.client.checks import check_page
from prefect_assay.client.decoding import page
from prefect_assay.client.filters import Filter, Ordering
from prefect_assay.client.http.pagination import Pager
from prefect_assay.client.http.request import Operation, Request, query
from prefect_assay.client.parameters import FieldTest, tests
from prefect_assay.models.page import Page
from prefect_assay.models.vocabulary import PAGE_LIMIT_MAX

M = TypeVar("M", bound=BaseModel)

Condition = Filter | str
Sorting = Ordering | str


class ListOptions(TypedDict, total=False):
    """What every list takes: a condition, text in names and codes, at most 8 columns, tests of single fields."""

    filter: Condition | None
    search: str | None
    sort: Sorting | None
    where: Sequence[FieldTest]


class PageOptions(ListOptions, total=False):
    """One page: 1 to 100 rows (the service's default is 50) after those to step over."""

    limit: int | None
    offset: int | None


class WalkOptions(ListOptions, total=False):
    """All rows, so many per request."""

    page_size: int


def listed(
    path: str,
    kind: type[M],
    own: Mapping[str, object] | None = None,
    *,
    filter: Condition | None = None,  # noqa: A002 - the contract's parameter name
    search: str | None = None,
    sort: Sorting | None = None,
    where: Sequence[FieldTest] = (),
    limit: int | None = None,
    offset: int | None = None,
) -> Operation[Page[M]]:
    """GET one page of a list of `kind`; `own` are the parameters that only this list has.

    Raises:
        InvalidRequest: a limit of contract 8 is not kept; nothing was sent.
    """
    check_page(limit, offset, sort)
    params = query(filter=filter, search=search, sort=sort, **(own or {}), limit=limit, offset=offset)
    return Operation(
        request=Request(method="GET", path=path, params=(*params, *tests(where)), repeatable=True),
        read=page(kind),
    )


def walked(
    fetch: Callable[..., Operation[Page[M]]],
    *,
    key: Callable[[M], str] = attrgetter("id"),
    after: Callable[[int, str], Operation[Page[M]]] | None = None,
    filter: Condition | None = None,  # noqa: A002 - the contract's parameter name
    search: str | None = None,
    sort: Sorting | None = None,
    where: Sequence[FieldTest] = (),
    page_size: int = PAGE_LIMIT_MAX,
) -> Pager[M]:
    """All rows of the list of which `fetch` makes one page; `key` and `after` as in `Pager`."""
    return Pager(
        lambda limit, offset: fetch(
            filter=filter, search=search, sort=sort, where=where, limit=limit, offset=offset
        ),
        key,
        limit=page_size,
        after=after,
    )
