"""Operations on results (contract 2.10, 4.2 and 4.5)."""

from collections.abc import Sequence

from prefect_assay.client.listing import Condition, Sorting, listed
from prefect_assay.client.parameters import FieldTest
from prefect_assay.client.read import model
from prefect_assay.client.request import Operation, Request, segment
from prefect_assay.client.walking import Pager
from prefect_assay.models.page import Page
from prefect_assay.models.result import Result, ResultSummary
from prefect_assay.models.vocabulary import PAGE_LIMIT_MAX


def results(experiment_id: str) -> Pager[Result]:
    """GET /experiments/{id}/results: all results of one experiment; none before the lab has released any."""
    path = f"/experiments/{segment(experiment_id)}/results"
    return Pager(lambda limit, offset: listed(path, Result, limit=limit, offset=offset), lambda row: row.id)


def result(result_id: str) -> Operation[Result]:
    """GET /results/{id}."""
    return Operation(
        request=Request(method="GET", path=f"/results/{segment(result_id)}", repeatable=True),
        read=model(Result),
    )


def result_summaries(
    *,
    filter: Condition | None = None,  # noqa: A002 - the contract's parameter name
    search: str | None = None,
    sort: Sorting | None = None,
    where: Sequence[FieldTest] = (),
    limit: int | None = None,
    offset: int | None = None,
) -> Operation[Page[ResultSummary]]:
    """GET /results: one page of all results of the organization."""
    return listed(
        "/results",
        ResultSummary,
        filter=filter,
        search=search,
        sort=sort,
        where=where,
        limit=limit,
        offset=offset,
    )


def iter_result_summaries(
    *,
    filter: Condition | None = None,  # noqa: A002 - the contract's parameter name
    search: str | None = None,
    sort: Sorting | None = None,
    where: Sequence[FieldTest] = (),
    page_size: int = PAGE_LIMIT_MAX,
) -> Pager[ResultSummary]:
    """All matching results of the organization, page by page as they are asked for."""
    return Pager(
        lambda limit, offset: result_summaries(
            filter=filter, search=search, sort=sort, where=where, limit=limit, offset=offset
        ),
        lambda row: row.id,
        limit=page_size,
    )
