"""The one shape of every list request (contract 4.1)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, TypedDict, TypeVar, cast

from pydantic import BaseModel

from prefect_assay.service.client.answers import about_experiment
from prefect_assay.service.client.checks import check_page
from prefect_assay.service.client.decoding import page
from prefect_assay.service.client.filters import (
    Filter,
    Ordering,
    and_,
    eq,
)
from prefect_assay.service.client.http.pagination import Pager
from prefect_assay.service.client.http.request import Operation, Request, query
from prefect_assay.service.client.parameters import FieldTest, tests
from prefect_assay.service.models.base import Page
from prefect_assay.service.models.vocabulary import PAGE_LIMIT_MAX

M = TypeVar("M", bound=BaseModel)

Condition = Filter | str
Sorting = Ordering | str


class ListOptions(TypedDict, total=False):
    """Options of every list: a condition, text in names and codes, 1 to 8 sort columns, tests of single fields."""

    filter: Condition | None
    search: str | None
    sort: Sorting | None
    where: Sequence[FieldTest]


class PageOptions(ListOptions, total=False):
    """One page: 1 to 100 rows (the service's default is 50) after those to skip."""

    limit: int | None
    offset: int | None


class WalkOptions(ListOptions, total=False):
    """All rows, so many per request."""

    page_size: int


@dataclass(frozen=True, slots=True)
class Listing(Generic[M]):
    """A list of the service; `key` is the id of a row. A list of one experiment has no row that names another."""

    path: str
    row: type[M]
    key: Callable[[M], str] = attrgetter("id")
    experiment_id: str | None = None

    def page(self, options: PageOptions, **own: object) -> Operation[Page[M]]:
        """GET one page; `own` are this list's own parameters. InvalidRequest for a limit over contract 8."""
        _refuse_unknown(options, PageOptions.__optional_keys__)
        limit, offset, sort = options.get("limit"), options.get("offset"), options.get("sort")
        check_page(limit, offset, sort)
        params = query(
            filter=options.get("filter"),
            search=options.get("search"),
            sort=sort,
            **own,
            limit=limit,
            offset=offset,
        )
        where = tests(options.get("where", ()))
        operation = Operation(
            request=Request(method="GET", path=self.path, params=(*params, *where), repeatable=True),
            read=page(self.row),
        )
        return operation if self.experiment_id is None else about_experiment(operation, self.experiment_id)

    def rows(self, options: WalkOptions, **own: object) -> Pager[M]:
        """All rows, page by page."""
        return walked(lambda one_page: self.page(one_page, **own), options, self.key)


def joined(condition: Condition | None, **fields: object) -> Condition | None:
    """The condition, and the value of each field that is given."""
    conditions = [eq(name, value) for name, value in query(**fields)]
    if not conditions:
        return condition
    if condition is not None:
        conditions.append(condition if isinstance(condition, Filter) else Filter(condition))
    return and_(*conditions)


def walked(
    fetch: Callable[[PageOptions], Operation[Page[M]]],
    options: WalkOptions,
    key: Callable[[M], str] = attrgetter("id"),
    after: Callable[[int, str], Operation[Page[M]]] | None = None,
) -> Pager[M]:
    """All rows; `key` and `after` as in `Pager`."""
    _refuse_unknown(options, WalkOptions.__optional_keys__)
    shared: dict[str, Any] = dict(options)
    limit = shared.pop("page_size", PAGE_LIMIT_MAX)
    return Pager(
        lambda size, offset: fetch(cast("PageOptions", {**shared, "limit": size, "offset": offset})),
        key,
        limit=limit,
        after=after,
    )


def _refuse_unknown(options: Mapping[str, object], known: frozenset[str]) -> None:
    unknown = sorted(options.keys() - known)
    if unknown:
        raise TypeError(f"unknown option of a list: {', '.join(unknown)}")
