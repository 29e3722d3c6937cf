"""Operations on the updates feed (contract 2.9 and 4.5), and on the earlier variant of it (contract 9.4).

A service of the earlier variant answers with `updates` and a cursor in place of `items` and totals, and knows the
filters `experiment_id` and `type` as parameters only. Its answer shows it; what it would silently ignore is then
requested again in its own form, or refused.
"""

from typing import Final, Unpack

from prefect_assay.client.decoding import off_shape, page
from prefect_assay.client.filters import Filter, and_, eq
from prefect_assay.client.http.pagination import Pager
from prefect_assay.client.http.request import Answer, Operation, Request, query, segment, succeeded
from prefect_assay.client.lists import Condition, Listing, PageOptions, WalkOptions, walked
from prefect_assay.errors import UnexpectedAnswer
from prefect_assay.models.base import Page
from prefect_assay.models.update import Update

_UPDATES: Final = Listing("/updates", Update)


def updates(
    *,
    experiment_id: str | None = None,
    type: str | None = None,  # noqa: A002 - the contract's name
    **options: Unpack[PageOptions],
) -> Operation[Page[Update]]:
    """GET /updates: one page of the feed, newest first. `experiment_id` and `type` join the filter.

    Args:
        experiment_id: of one experiment only.
        type: of one kind only, such as `status_change`.
        options: as for every list.

    Raises:
        UnexpectedAnswer: the service speaks the earlier variant and would ignore an option.
    """
    joined = _joined(experiment_id, type, options.get("filter"))
    current = _UPDATES.page({**options, "filter": joined})
    ignored = [name for name in ("filter", "search", "sort", "where", "offset") if options.get(name)]
    own = query(experiment_id=experiment_id, type=type)

    def read(answer: Answer) -> Page[Update]:
        if ignored and _is_earlier(answer):
            raise off_shape(
                answer,
                f"the service speaks the earlier interface, whose feed knows no {', '.join(ignored)}; "
                "use experiment_id and type, and iter_updates for further pages",
            )
        return current.read(answer)

    def instead(answer: Answer) -> Operation[Page[Update]] | None:
        if not own or ignored or not succeeded(answer.status) or not _is_earlier(answer):
            return None
        return _earlier(experiment_id, type, limit=options.get("limit"))

    return Operation(request=current.request, read=read, instead=instead)


def iter_updates(
    *,
    experiment_id: str | None = None,
    type: str | None = None,  # noqa: A002 - the contract's name
    **options: Unpack[WalkOptions],
) -> Pager[Update]:
    """All matching updates, page by page as they are consumed: stop reading where the known ones begin.

    Raises:
        UnexpectedAnswer: the service speaks the earlier variant and would ignore an option.
    """
    return walked(
        lambda one_page: updates(experiment_id=experiment_id, type=type, **one_page),
        options,
        after=lambda limit, cursor: _earlier(experiment_id, type, limit=limit, cursor=cursor),
    )


def experiment_updates(experiment_id: str) -> Pager[Update]:
    """GET /experiments/{id}/updates: all of one experiment, oldest first."""
    return Listing(f"/experiments/{segment(experiment_id)}/updates", Update).rows({})


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


def _joined(experiment_id: str | None, kind: str | None, condition: Condition | None) -> Condition | None:
    conditions = [eq(name, value) for name, value in query(experiment_id=experiment_id, type=kind)]
    if not conditions:
        return condition
    if condition is not None:
        conditions.append(condition if isinstance(condition, Filter) else Filter(condition))
    return and_(*conditions)
