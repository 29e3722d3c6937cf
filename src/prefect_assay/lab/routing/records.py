"""Targets, results, the updates feed (contract 4.4 and 4.5)."""

from typing import Final

from prefect_assay.lab.experiments import custom_targets, records
from prefect_assay.lab.requests.schemas import RequestCustomTarget
from prefect_assay.lab.routing.route import Route, listed, shown
from prefect_assay.lab.shapes.custom_targets import CustomTarget, CustomTargetPage
from prefect_assay.lab.shapes.errors import Error
from prefect_assay.lab.shapes.records import Target, TargetPage, UpdatePage
from prefect_assay.lab.shapes.results import Result, ResultItemPage

TARGETS: Final = (
    listed(
        "/targets",
        records.targets,
        "List catalog targets",
        "target",
        TargetPage,
        records.TARGETS,
        "selfservice_only",
        "detailed",
        "show_conjugated",
    ),
    # Before the target of an id, which would take the name of this collection for one.
    listed(
        "/targets/request-custom",
        custom_targets.listing,
        "List requests for custom targets, newest first",
        "target",
        CustomTargetPage,
        custom_targets.LISTING,
    ),
    Route(
        "POST",
        "/targets/request-custom",
        custom_targets.request,
        "Ask for a target that the catalog does not have",
        "create",
        "target",
        RequestCustomTarget,
        answers={201: CustomTarget},
        refuses={409: Error, 422: Error},
        description="By its residues or by a structure. 409 when the product id is known already.",
    ),
    shown(
        "/targets/request-custom/{request_id}",
        custom_targets.detail,
        "Show a request for a custom target",
        "target",
        CustomTarget,
    ),
    shown("/targets/{target_id}", records.one_target, "Show a target", "target", Target),
)

RESULTS: Final = (
    listed(
        "/results", records.results, "List results, newest first", "result", ResultItemPage, records.RESULTS
    ),
    shown("/results/{result_id}", records.one_result, "Show a result", "result", Result),
)

UPDATES: Final = (
    listed(
        "/updates", records.updates, "The updates feed, newest first", "update", UpdatePage, records.UPDATES
    ),
)
