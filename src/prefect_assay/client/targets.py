"""Operations on the target catalog (contract 4.4)."""

from prefect_assay.client.filters import Filter, Ordering
from prefect_assay.client.read import model, page
from prefect_assay.client.request import Operation, Request, query, segment
from prefect_assay.client.walking import Pager
from prefect_assay.models.page import Page
from prefect_assay.models.target import Target
from prefect_assay.models.vocabulary import PAGE_LIMIT_MAX


def targets(
    *,
    search: str | None = None,
    selfservice_only: bool | None = None,
    filter: Filter | str | None = None,  # noqa: A002 - the contract's parameter name
    sort: Ordering | str | None = None,
    limit: int | None = None,
    offset: int | None = None,
) -> Operation[Page[Target]]:
    """GET /targets: one page of the catalog."""
    params = query(
        search=search,
        selfservice_only=selfservice_only,
        filter=filter,
        sort=sort,
        limit=limit,
        offset=offset,
    )
    return Operation(
        request=Request(method="GET", path="/targets", params=params, repeatable=True), read=page(Target)
    )


def iter_targets(
    *,
    search: str | None = None,
    selfservice_only: bool | None = None,
    filter: Filter | str | None = None,  # noqa: A002 - the contract's parameter name
    sort: Ordering | str | None = None,
    page_size: int = PAGE_LIMIT_MAX,
) -> Pager[Target]:
    """All matching targets, page by page as they are asked for."""
    return Pager(
        lambda limit, offset: targets(
            search=search,
            selfservice_only=selfservice_only,
            filter=filter,
            sort=sort,
            limit=limit,
            offset=offset,
        ),
        lambda target: target.id,
        limit=page_size,
    )


def target(target_id: str) -> Operation[Target]:
    """GET /targets/{id}.

    Raises:
        NotFound: the catalog does not have it.
    """
    return Operation(
        request=Request(method="GET", path=f"/targets/{segment(target_id)}", repeatable=True),
        read=model(Target),
    )
