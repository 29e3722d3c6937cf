"""One page of a list (contract 4.1): paging, filter, search, sort and the per-field query forms."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from assay_lab.kernel.refusals import Refusal
from assay_lab.kernel.store import Row
from assay_lab.requests import filter_sql
from assay_lab.requests.core import Answer, Call, read_integer
from assay_lab.requests.filter_sql import Column, Sql
from assay_lab.vocabulary import PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX

__all__ = ["Column", "Listing", "Sql", "make_page"]

# `equ(field)=value` and its kin, contract 4.1.
_QUERY_OPERATORS: Final = {"equ": "eq", "geq": "gte", "gtr": "gt", "leq": "lte", "lss": "lt"}
_FORM: Final = re.compile(rf"({'|'.join(_QUERY_OPERATORS)})\((.*)\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Listing:
    """What a list offers."""

    source: str  # FROM clause; its first table has the columns `seq` and, when `by_org`, `org_id`
    columns: Mapping[str, Column]  # what can be filtered and sorted by, under its public name
    search: tuple[str, ...] = ()  # SQL of the columns that `search` looks into
    plain: tuple[str, ...] = ()  # columns that also have a plain query parameter, as in `status=done`
    order: str = "{table}.created_at DESC, {table}.seq DESC"  # without `sort`
    by_org: bool = True  # whether rows belong to organizations
    select: str = "*"

    @property
    def table(self) -> str:
        """The first table."""
        return self.source.split()[0]


def make_page(
    call: Call, listing: Listing, render: Callable[[Row], dict[str, Any]], *, only: tuple[Sql, ...] = ()
) -> Answer:
    """`items`, `total`, `count`, `offset` (contract 4.1). `only` are the caller's conditions."""
    query = call.query
    words = call.lab.settings.words
    wire_names = {next(iter(words.to_wire({name: 0}))): column for name, column in listing.columns.items()}
    listing = replace(listing, columns=wire_names)
    limit = read_integer(query.get("limit", str(PAGE_LIMIT_DEFAULT)), "limit", low=1, high=PAGE_LIMIT_MAX)
    offset = read_integer(query.get("offset", "0"), "offset", low=0)
    conditions = [*only, *_list_conditions(listing, query)]
    if listing.by_org:
        conditions.append(Sql(f"{listing.table}.org_id = ?", (call.who.org_id,)))
    clause = " AND ".join(f"({part.text})" for part in conditions) or "1"
    values = tuple(value for part in conditions for value in part.values)
    matching = Sql(f"FROM {listing.source} WHERE {clause}", values)
    order = _make_order(listing, query)
    with call.lab.store.transaction() as db:
        [total] = db.column(f"SELECT count(*) {matching.text}", *matching.values)
        rows = db.all(
            f"SELECT {listing.select} {matching.text} ORDER BY {order.text} LIMIT ? OFFSET ?",
            *matching.values,
            *order.values,
            limit,
            offset,
        )
        items = [render(row) for row in rows]
    return Answer({"items": items, "total": total, "count": len(items), "offset": offset})


def _make_order(listing: Listing, query: Mapping[str, str]) -> Sql:
    if query.get("sort", "").strip():
        return filter_sql.order_by(query["sort"], listing.columns, f"{listing.table}.seq")
    return Sql(listing.order.format(table=listing.table))


def _list_conditions(listing: Listing, query: Mapping[str, str]) -> list[Sql]:
    conditions: list[Sql] = []
    if query.get("filter", "").strip():
        conditions.append(filter_sql.where(query["filter"], listing.columns))
    if query.get("search", "").strip() and listing.search:
        tests = [filter_sql.contains(Sql(column), query["search"].strip()) for column in listing.search]
        values = tuple(value for test in tests for value in test.values)
        conditions.append(Sql(" OR ".join(test.text for test in tests), values))
    conditions += [
        filter_sql.compare(listing.columns[name], "eq", query[name], name)
        for name in listing.plain
        if name in query
    ]
    for key, value in query.items():
        if form := _FORM.fullmatch(key):
            operator, name = _QUERY_OPERATORS[form[1]], form[2].strip()
            if name not in listing.columns:
                # Other unknown parameters are ignored; an ignored filter would answer with unfiltered rows.
                raise Refusal(400, f"{key}: unknown field {name!r}")
            conditions.append(filter_sql.compare(listing.columns[name], operator, value, name))
    return conditions
