"""Operations on results (contract 2.10, 4.2 and 4.5)."""

from functools import partial
from typing import Unpack

from prefect_assay.client.decoding import get
from prefect_assay.client.http.pagination import Pager
from prefect_assay.client.http.request import Operation, segment
from prefect_assay.client.lists import PageOptions, WalkOptions, listed, walked
from prefect_assay.models.page import Page
from prefect_assay.models.result import Result, ResultSummary


def results(experiment_id: str) -> Pager[Result]:
    """GET /experiments/{id}/results: all results of one experiment; none before the lab has released any."""
    return walked(partial(listed, f"/experiments/{segment(experiment_id)}/results", Result))


def result(result_id: str) -> Operation[Result]:
    """GET /results/{id}."""
    return get(f"/results/{segment(result_id)}", Result)


def result_summaries(
    **chosen: Unpack[PageOptions],
) -> Operation[Page[ResultSummary]]:
    """GET /results: one page of all results of the organization."""
    return listed("/results", ResultSummary, **chosen)


def iter_result_summaries(
    **chosen: Unpack[WalkOptions],
) -> Pager[ResultSummary]:
    """All matching results of the organization, page by page as they are asked for."""
    return walked(result_summaries, **chosen)
