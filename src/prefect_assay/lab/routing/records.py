"""Targets, results, the updates feed (contract 4.4 and 4.5)."""

from typing import Final

from prefect_assay.lab import custom_targets, records
from prefect_assay.lab.routing.route import PAGE, Route
from prefect_assay.lab.schemas_targets import RequestCustomTarget
from prefect_assay.lab.shapes.custom_targets import CustomTarget, CustomTargetPage
from prefect_assay.lab.shapes.errors import Error
from prefect_assay.lab.shapes.records import Target, TargetPage, UpdatePage
from prefect_assay.lab.shapes.results import Result, ResultItemPage

TARGETS: Final = (
    Route(
        "GET",
        "/targets",
        records.targets,
        "List catalog targets",
        "list",
        "target",
        parameters=(
            *PAGE,
            "selfservice_only",
            "detailed",
            "show_conjugated",
            "name",
            "vendor_name",
            "vendor",
            "catalog_number",
        ),
        answers={200: TargetPage},
        listing=records.TARGETS,
    ),
    # Before the target of an id, which would take the name of this collection for one.
    Route(
        "GET",
        "/targets/request-custom",
        custom_targets.listing,
        "List requests for custom targets, newest first",
        "list",
        "target",
        parameters=(*PAGE, "status", "name", "product_id"),
        answers={200: CustomTargetPage},
        listing=custom_targets.LISTING,
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
    Route(
        "GET",
        "/targets/request-custom/{request_id}",
        custom_targets.detail,
        "Show a request for a custom target",
        "read",
        "target",
        answers={200: CustomTarget},
    ),
    Route(
        "GET",
        "/targets/{target_id}",
        records.one_target,
        "Show a target",
        "read",
        "target",
        answers={200: Target},
    ),
)

RESULTS: Final = (
    Route(
        "GET",
        "/results",
        records.results,
        "List results, newest first",
        "list",
        "result",
        parameters=(*PAGE, "experiment_id", "result_type"),
        answers={200: ResultItemPage},
        listing=records.RESULTS,
    ),
    Route(
        "GET",
        "/results/{result_id}",
        records.one_result,
        "Show a result",
        "read",
        "result",
        answers={200: Result},
    ),
)

UPDATES: Final = (
    Route(
        "GET",
        "/updates",
        records.updates,
        "The updates feed, newest first",
        "list",
        "update",
        parameters=(*PAGE, "experiment_id", "type"),
        answers={200: UpdatePage},
        listing=records.UPDATES,
    ),
)
