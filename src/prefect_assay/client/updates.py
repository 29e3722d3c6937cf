"""Operations on the updates feed (contract 2.9 and 4.5)."""

from prefect_assay.client.filters import Filter, Ordering, and_, eq
from prefect_assay.client.read import page
from prefect_assay.client.request import Operation, Request, query, segment
from prefect_assay.client.walking import Pager
from prefect_assay.models.page import Page
from prefect_assay.models.update import Update
from prefect_assay.models.vocabulary import PAGE_LIMIT_MAX


def updates(
    *,
    experiment_id: str | None = None,
    filter: Filter | str | None = None,  # noqa: A002 - the contract's parameter name
    sort: Ordering | str | None = None,
    limit: int | None = None,
    offset: int | None = None,
) -> Operation[Page[Update]]:
    """GET /updates: one page of the feed, newest first. `experiment_id` joins the filter."""
    return Operation(
        request=Request(
            method="GET",
            path="/updates",
            params=query(filter=_joined(experiment_id, filter), sort=sort, limit=limit, offset=offset),
            repeatable=True,
        ),
        read=page(Update),
    )


def iter_updates(
    *,
    experiment_id: str | None = None,
    filter: Filter | str | None = None,  # noqa: A002 - the contract's parameter name
    sort: Ordering | str | None = None,
    page_size: int = PAGE_LIMIT_MAX,
) -> Pager[Update]:
    """All matching updates, page by page as they are asked for: stop reading where the known ones begin."""
    return Pager(
        lambda limit, offset: updates(
            experiment_id=experiment_id, filter=filter, sort=sort, limit=limit, offset=offset
        ),
        lambda update: update.id,
        limit=page_size,
    )


def experiment_updates(experiment_id: str) -> Pager[Update]:
    """GET /experiments/{id}/updates: all of one experiment, oldest first."""
    return Pager(
        lambda limit, offset: Operation(
            request=Request(
                method="GET",
                path=f"/experiments/{segment(experiment_id)}/updates",
                params=query(limit=limit, offset=offset),
                repeatable=True,
            ),
            read=page(Update),
        ),
        lambda update: update.id,
    )


def _joined(experiment_id: str | None, condition: Filter | str | None) -> Filter | str | None:
    if experiment_id is None:
        return condition
    own = eq("experiment_id", experiment_id)
    if condition is None:
        return own
    return and_(own, condition if isinstance(condition, Filter) else Filter(condition))
