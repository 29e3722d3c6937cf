"""Operations on results (contract 2.10, 4.2 and 4.5)."""

from typing import Final, Unpack

from prefect_assay.client.decoding import get
from prefect_assay.client.http.pagination import Pager
from prefect_assay.client.http.request import Operation, segment
from prefect_assay.client.lists import Listing, PageOptions, WalkOptions
from prefect_assay.models.base import Page
from prefect_assay.models.result import Result, ResultSummary

_SUMMARIES: Final = Listing("/results", ResultSummary)


def results(experiment_id: str) -> Pager[Result]:
    """GET /experiments/{id}/results: all results of one experiment; empty before the lab has released any."""
    return Listing(f"/experiments/{segment(experiment_id)}/results", Result).rows({})


def result(result_id: str) -> Operation[Result]:
    """GET /results/{id}."""
    return get(f"/results/{segment(result_id)}", Result)


def result_summaries(**options: Unpack[PageOptions]) -> Operation[Page[ResultSummary]]:
    """GET /results: one page of all results of the organization."""
    return _SUMMARIES.page(options)


def iter_result_summaries(**options: Unpack[WalkOptions]) -> Pager[ResultSummary]:
    """All matching results of the organization, page by page as they are consumed."""
    return _SUMMARIES.rows(options)
