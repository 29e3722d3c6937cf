"""Operations on the target catalog (contract 4.4)."""

from collections.abc import Sequence

from prefect_assay.client.listing import Condition, Sorting, listed
from prefect_assay.client.parameters import FieldTest
from prefect_assay.client.read import model
from prefect_assay.client.request import Operation, Request, segment
from prefect_assay.client.walking import Pager
from prefect_assay.models.page import Page
from prefect_assay.models.target import Target
from prefect_assay.models.vocabulary import PAGE_LIMIT_MAX


def targets(
    *,
    search: str | None = None,
    name: str | None = None,
    vendor_name: str | None = None,
    selfservice_only: bool | None = None,
    detailed: bool | None = None,
    show_conjugated: bool | None = None,
    filter: Condition | None = None,  # noqa: A002 - the contract's parameter name
    sort: Sorting | None = None,
    where: Sequence[FieldTest] = (),
    limit: int | None = None,
    offset: int | None = None,
) -> Operation[Page[Target]]:
    """GET /targets: one page of the catalog.

    Args:
        search: text in names and catalog numbers.
        name: the whole name.
        vendor_name: the vendor's whole name.
        selfservice_only: only targets with a calibrated price (contract 2.11).
        detailed: rows with `details`.
        show_conjugated: also conjugated forms of a target.
        filter: a condition.
        sort: columns, at most 8.
        where: tests of single fields.
        limit: rows, 1 to 100.
        offset: rows to step over.
    """
    return listed(
        "/targets",
        Target,
        filter=filter,
        search=search,
        sort=sort,
        where=where,
        limit=limit,
        offset=offset,
        name=name,
        vendor_name=vendor_name,
        selfservice_only=selfservice_only,
        detailed=detailed,
        show_conjugated=show_conjugated,
    )


def iter_targets(
    *,
    search: str | None = None,
    name: str | None = None,
    vendor_name: str | None = None,
    selfservice_only: bool | None = None,
    detailed: bool | None = None,
    show_conjugated: bool | None = None,
    filter: Condition | None = None,  # noqa: A002 - the contract's parameter name
    sort: Sorting | None = None,
    where: Sequence[FieldTest] = (),
    page_size: int = PAGE_LIMIT_MAX,
) -> Pager[Target]:
    """All matching targets, page by page as they are asked for."""
    return Pager(
        lambda limit, offset: targets(
            search=search,
            name=name,
            vendor_name=vendor_name,
            selfservice_only=selfservice_only,
            detailed=detailed,
            show_conjugated=show_conjugated,
            filter=filter,
            sort=sort,
            where=where,
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
