"""Operations on the updates feed (contract 2.9 and 4.5), and on the earlier variant of it (contract 9.4).

A service of the earlier variant answers with `updates` and a cursor in place of `items` and totals, and knows the
filters `experiment_id` and `type` as parameters only. Its answer shows it; what it would silently ignore is then asked
for again in its own way, or refused.
"""

from collections.abc import Callable, Sequence

from prefect_assay.client.filters import Filter, and_, eq
from prefect_assay.client.listing import Condition, Sorting, listed
from prefect_assay.client.parameters import FieldTest
from prefect_assay.client.read import off_shape, page
from prefect_assay.client.request import Answer, Operation, Request, query, segment, succeeded
from prefect_assay.client.walking import Pager
from prefect_assay.errors import UnexpectedAnswer
from prefect_assay.models.page import Page
from prefect_assay.models.update import Update
from prefect_assay.models.vocabulary import PAGE_LIMIT_MAX


def updates(
    *,
    experiment_id: str | None = None,
    type: str | None = None,  # noqa: A002 - the contract's name
    filter: Condition | None = None,  # noqa: A002 - the contract's parameter name
    search: str | None = None,
    sort: Sorting | None = None,
    where: Sequence[FieldTest] = (),
    limit: int | None = None,
    offset: int | None = None,
) -> Operation[Page[Update]]:
    """GET /updates: one page of the feed, newest first. `experiment_id` and `type` join the filter.

    Args:
        experiment_id: of one experiment only.
        type: of one kind only, such as `status_change`.
        filter: a condition.
        search: text that the feed is searched for.
        sort: columns, at most 8.
        where: tests of single fields.
        limit: rows, 1 to 100.
        offset: rows to step over.

    Raises:
        UnexpectedAnswer: the service speaks the earlier variant and would ignore what was asked for.
    """
    current = listed(
        "/updates",
        Update,
        filter=_joined(experiment_id, type, filter),
        search=search,
        sort=sort,
        where=where,
        limit=limit,
        offset=offset,
    )
    asked = {"filter": filter, "search": search, "sort": sort, "where": where, "offset": offset}
    ignored = [name for name, value in asked.items() if value]
    ours = query(experiment_id=experiment_id, type=type)

    def instead(answer: Answer) -> Operation[Page[Update]] | None:
        if not ours or ignored or not succeeded(answer.status) or not _is_earlier(answer):
            return None
        return _earlier(experiment_id, type, limit=limit)

    return Operation(request=current.request, read=_reader(ignored), instead=instead)


def iter_updates(
    *,
    experiment_id: str | None = None,
    type: str | None = None,  # noqa: A002 - the contract's name
    filter: Condition | None = None,  # noqa: A002 - the contract's parameter name
    search: str | None = None,
    sort: Sorting | None = None,
    where: Sequence[FieldTest] = (),
    page_size: int = PAGE_LIMIT_MAX,
) -> Pager[Update]:
    """All matching updates, page by page as they are asked for: stop reading where the known ones begin.

    Raises:
        UnexpectedAnswer: the service speaks the earlier variant and would ignore what was asked for.
    """
    return Pager(
        lambda limit, offset: updates(
            experiment_id=experiment_id,
            type=type,
            filter=filter,
            search=search,
            sort=sort,
            where=where,
            limit=limit,
            offset=offset,
        ),
        lambda update: update.id,
        limit=page_size,
        after=lambda limit, cursor: _earlier(experiment_id, type, limit=limit, cursor=cursor),
    )


def experiment_updates(experiment_id: str) -> Pager[Update]:
    """GET /experiments/{id}/updates: all of one experiment, oldest first."""
    path = f"/experiments/{segment(experiment_id)}/updates"
    return Pager(
        lambda limit, offset: listed(path, Update, limit=limit, offset=offset), lambda update: update.id
    )


def _earlier(
    experiment_id: str | None, kind: str | None, *, limit: int | None, cursor: str | None = None
) -> Operation[Page[Update]]:
    """The earlier variant's request: its filters are parameters, its pages follow a cursor (contract 9.4)."""
    params = query(experiment_id=experiment_id, type=kind, limit=limit, cursor=cursor)
    return Operation(
        request=Request(method="GET", path="/updates", params=params, repeatable=True), read=page(Update)
    )


def _is_earlier(answer: Answer) -> bool:
    try:
        body = answer.json()
    except UnexpectedAnswer:
        return False
    return isinstance(body, dict) and "items" not in body and isinstance(body.get("updates"), list)


def _reader(ignored: list[str]) -> Callable[[Answer], Page[Update]]:
    def read(answer: Answer) -> Page[Update]:
        if ignored and _is_earlier(answer):
            raise off_shape(
                answer,
                f"the service speaks the earlier interface, whose feed knows no {', '.join(ignored)}; "
                "use experiment_id and type, and iter_updates for further pages",
            )
        return page(Update)(answer)

    return read


def _joined(experiment_id: str | None, kind: str | None, condition: Condition | None) -> Condition | None:
    own = [
        eq(name, value)
        for name, value in (("experiment_id", experiment_id), ("type", kind))
        if value is not None
    ]
    if not own:
        return condition
    if condition is not None:
        own.append(condition if isinstance(condition, Filter) else Filter(condition))
    return and_(*own)
