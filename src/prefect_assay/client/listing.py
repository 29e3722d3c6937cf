"""The one shape of every list request (contract 4.1): paging, filter, search, sort and tests of single fields."""

from collections.abc import Iterable
from typing import TypeVar

from pydantic import BaseModel

from prefect_assay.client.checks import check_page
from prefect_assay.client.filters import Filter, Ordering
from prefect_assay.client.parameters import FieldTest, tests
from prefect_assay.client.read import page
from prefect_assay.client.request import Operation, Request, query
from prefect_assay.models.page import Page

M = TypeVar("M", bound=BaseModel)

Condition = Filter | str
Sorting = Ordering | str


def listed(
    path: str,
    kind: type[M],
    *,
    filter: Condition | None = None,  # noqa: A002 - the contract's parameter name
    search: str | None = None,
    sort: Sorting | None = None,
    where: Iterable[FieldTest] = (),
    limit: int | None = None,
    offset: int | None = None,
    **plain: object,
) -> Operation[Page[M]]:
    """GET one page of a list.

    Args:
        path: of the list.
        kind: what its rows are.
        filter: a condition.
        search: text that the list looks for in names and codes.
        sort: one or more columns, at most 8.
        where: tests of single fields, in parameters of their own.
        limit: rows, 1 to 100; the service's default is 50.
        offset: rows to step over.
        plain: further parameters that this list has.

    Raises:
        InvalidRequest: a limit of contract 8 is not kept; nothing was sent.
    """
    check_page(limit, offset, sort)
    params = query(filter=filter, search=search, sort=sort, **plain, limit=limit, offset=offset)
    return Operation(
        request=Request(method="GET", path=path, params=(*params, *tests(where)), repeatable=True),
        read=page(kind),
    )
