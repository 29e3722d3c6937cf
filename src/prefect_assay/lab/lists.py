"""One page of a list (contract 4.1): paging, filter, search, sort and the per-field query forms."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from prefect_assay.lab import filter_sql
from prefect_assay.lab.core import Call, integer
from prefect_assay.lab.filter_sql import Column, Sql
from prefect_assay.lab.store import Db, Row
from prefect_assay.models.vocabulary import PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX

__all__ = ["Column", "Listing", "Sql", "page"]

# `equ(field)=value` and its kin, contract 4.1.
_QUERY_OPERATORS: Final = {"equ": "eq", "geq": "gte", "gtr": "gt", "leq": "lte", "lss": "lt"}


@dataclass(frozen=True, slots=True)
class Listing:
    """What a list offers.

    Attributes:
        source: FROM clause; its first table has the columns `seq` and, when `by_org`, `org_id`.
        columns: what can be filtered and sorted by, under its public name.
        search: SQL of the columns that `search` looks into.
        plain: columns that also have a plain query parameter, as in `status=done`.
        order: order without `sort`.
        by_org: whether rows belong to organisations.
        select: SELECT list.
    """

    source: str
    columns: Mapping[str, Column]
    search: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()
    order: str = "{table}.created_at DESC, {table}.seq DESC"
    by_org: bool = True
    select: str = "*"

    @property
    def table(self) -> str:
        """The first table."""
        return self.source.split()[0]


def page(
    db: Db,
    listing: Listing,
    call: Call,
    *,
    render: Callable[[Db, Row], dict[str, Any]],
    only: tuple[Sql, ...] = (),
) -> dict[str, Any]:
    """`items`, `total`, `count`, `offset` (contract 4.1).

    Args:
        db: the transaction.
        listing: what the list offers.
        call: the request; its query holds the parameters.
        render: a database row to an item.
        only: conditions that the path or the endpoint sets.

    Raises:
        Refusal: 400 for a parameter that is no good.
    """
    query = call.query
    words = call.lab.settings.words
    listing = replace(
        listing,
        columns={next(iter(words.to_wire({name: 0}))): column for name, column in listing.columns.items()},
    )
    limit = integer(query.get("limit", str(PAGE_LIMIT_DEFAULT)), "limit", low=1, high=PAGE_LIMIT_MAX)
    offset = integer(query.get("offset", "0"), "offset", low=0)
    conditions = [*only, *_conditions(listing, query)]
    if listing.by_org:
        conditions.append(Sql(f"{listing.table}.org_id = ?", (call.who.org_id,)))
    clause = " AND ".join(f"({part.text})" for part in conditions) or "1"
    values = [value for part in conditions for value in part.values]
    order = _order(listing, query)
    # Text below comes from column lists only; what callers send is bound.
    total = db.one(f"SELECT count(*) AS n FROM {listing.source} WHERE {clause}", *values)  # noqa: S608
    rows = db.all(
        f"SELECT {listing.select} FROM {listing.source} WHERE {clause} ORDER BY {order.text} LIMIT ? OFFSET ?",  # noqa: S608
        *values,
        *order.values,
        limit,
        offset,
    )
    items = [render(db, row) for row in rows]
    return {"items": items, "total": total["n"] if total else 0, "count": len(items), "offset": offset}


def _order(listing: Listing, query: Mapping[str, str]) -> Sql:
    if query.get("sort", "").strip():
        return filter_sql.order_by(query["sort"], listing.columns, f"{listing.table}.seq")
    return Sql(listing.order.format(table=listing.table))


def _conditions(listing: Listing, query: Mapping[str, str]) -> list[Sql]:
    found: list[Sql] = []
    if query.get("filter", "").strip():
        found.append(filter_sql.where(query["filter"], listing.columns))
    if query.get("search", "").strip() and listing.search:
        tests = [filter_sql.contains(Sql(column), query["search"].strip()) for column in listing.search]
        values = tuple(value for test in tests for value in test.values)
        found.append(Sql(" OR ".join(test.text for test in tests), values))
    found += [
        filter_sql.compare(listing.columns[name], "eq", query[name], name)
        for name in listing.plain
        if name in query
    ]
    for name, column in listing.columns.items():
        for word, operator in _QUERY_OPERATORS.items():
            if (key := f"{word}({name})") in query:
                found.append(filter_sql.compare(column, operator, query[key], name))
    return found
