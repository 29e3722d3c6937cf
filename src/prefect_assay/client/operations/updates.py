"""Operations on the updates feed (contract 2.9 and 4.5), and on the earlier variant of it (contract 9.4).

A service of the earlier variant answers with `updates` and a cursor in place of `items` and totals, and knows the
filters `experiment_id` and `type` as parameters only. Its answer shows it; what it would silently ignore is then asked
for again in its own way, or refused.
"""

from functools import partial
from typing import Unpack

from prefect_assay.client.decoding import off_shape, page
from prefect_assay.client.filters import Filter, and_, eq
from prefect_assay.client.http.pagination import Pager
from prefect_assay.client.http.request import Answer, Operation, Request, query, segment, succeeded
from prefect_assay.client.lists import Condition, PageOptions, WalkOptions, listed, walked
from prefect_assay.errors import UnexpectedAnswer
from prefect_assay.models.page import Page
from prefect_assay.models.update import Update


def updates(
    *,
    experiment_id: str | None = None,
    type: str | None = None,  # noqa: A002 - the contract's name
    **chosen: Unpack[PageOptions],
) -> Operation[Page[Update]]:
    """GET /updates: one page of the feed, newest first. `experiment_id` and `type` join the filter.

    Args:
        experiment_id: of one experiment only.
        type: of one kind only, such as `status_change`.
        chosen: as for every list.

    Raises:
        UnexpectedAnswer: the service speaks the earlier variant and would ignore what was asked for.
    """
    joined = _joined(experiment_id, type, chosen.get("filter"))
    current = listed("/updates", Update, **(chosen | {"filter": joined}))
    ignored = [name for name in ("filter", "search", "sort", "where", "offset") if chosen.get(name)]
    ours = query(experiment_id=experiment_id, type=type)

    def read(answer: Answer) -> Page[Update]:
        if ignored and _is_earlier(answer):
            raise off_shape(
                answer,
                f"the service speaks the earlier interface, whose feed knows no {', '.join(ignored)}; "
                "use experiment_id and type, and iter_updates for further pages",
            )
        return current.read(answer)

    def instead(answer: Answer) -> Operation[Page[Update]] | None:
        if not ours or ignored or not succeeded(answer.status) or not _is_earlier(answer):
            return None
        return _earlier(experiment_id, type, limit=chosen.get("limit"))

    return Operation(request=current.request, read=read, instead=instead)


def iter_updates(
    *,
    experiment_id: str | None = None,
    type: str | None = None,  # noqa: A002 - the contract's name
    **chosen: Unpack[WalkOptions],
) -> Pager[Update]:
    """All matching updates, page by page as they are asked for: stop reading where the known ones begin.

    Raises:
        UnexpectedAnswer: the service speaks the earlier variant and would ignore what was asked for.
    """
    return walked(
        partial(updates, experiment_id=experiment_id, type=type),
        after=lambda limit, cursor: _earlier(experiment_id, type, limit=limit, cursor=cursor),
        **chosen,
    )


def experiment_updates(experiment_id: str) -> Pager[Update]:
    """GET /experiments/{id}/updates: all of one experiment, oldest first."""
    return walked(partial(listed, f"/experiments/{segment(experiment_id)}/updates", Update))


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
    own = [eq(name, value) for name, value in query(experiment_id=experiment_id, type=kind)]
    if not own:
        return condition
    if condition is not None:
        own.append(condition if isinstance(condition, Filter) else Filter(condition))
    return and_(*own)
