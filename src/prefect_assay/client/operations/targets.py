"""Operations on the target catalog (contract 4.4)."""

from functools import partial
from typing import Unpack

from prefect_assay.client.decoding import get
from prefect_assay.client.http.pagination import Pager
from prefect_assay.client.http.request import Operation, segment
from prefect_assay.client.lists import PageOptions, WalkOptions, listed, walked
from prefect_assay.models.page import Page
from prefect_assay.models.target import Target


def targets(
    *,
    name: str | None = None,
    vendor_name: str | None = None,
    selfservice_only: bool | None = None,
    detailed: bool | None = None,
    show_conjugated: bool | None = None,
    **chosen: Unpack[PageOptions],
) -> Operation[Page[Target]]:
    """GET /targets: one page of the catalog.

    Args:
        name: the whole name.
        vendor_name: the vendor's whole name.
        selfservice_only: only targets with a calibrated price (contract 2.11).
        detailed: rows with `details`.
        show_conjugated: also conjugated forms of a target.
        chosen: as for every list; `search` is text in names and catalog numbers.
    """
    return listed(
        "/targets",
        Target,
        {
            "name": name,
            "vendor_name": vendor_name,
            "selfservice_only": selfservice_only,
            "detailed": detailed,
            "show_conjugated": show_conjugated,
        },
        **chosen,
    )


def iter_targets(
    *,
    name: str | None = None,
    vendor_name: str | None = None,
    selfservice_only: bool | None = None,
    detailed: bool | None = None,
    show_conjugated: bool | None = None,
    **chosen: Unpack[WalkOptions],
) -> Pager[Target]:
    """All matching targets, page by page as they are asked for."""
    return walked(
        partial(
            targets,
            name=name,
            vendor_name=vendor_name,
            selfservice_only=selfservice_only,
            detailed=detailed,
            show_conjugated=show_conjugated,
        ),
        **chosen,
    )


def target(target_id: str) -> Operation[Target]:
    """GET /targets/{id}.

    Raises:
        NotFound: the catalog does not have it.
    """
    return get(f"/targets/{segment(target_id)}", Target)
