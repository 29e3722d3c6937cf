"""Which assay makes which records and files."""

from collections.abc import Iterator
from typing import Any

from prefect_assay.lab.measure.binding import affinity_entries, screening_entries
from prefect_assay.lab.measure.package import File, binding_files
from prefect_assay.lab.measure.request import Request


def records(request: Request) -> list[dict[str, Any]]:
    """One result record: the summary of all designs."""
    entries = (
        affinity_entries(request) if request.experiment_type == "affinity" else screening_entries(request)
    )
    return [
        {
            "result_type": request.experiment_type,
            "title": request.experiment_type,
            "summary": entries,
            "metadata": {},
        }
    ]


def files(request: Request) -> Iterator[File]:
    """The files of the data package."""
    return binding_files(request)
