"""One experiment of a report, from the files of its newest archived version.

Answers are kept as they came, so a field may be absent or odd. A value that cannot be read is left out, and never ends a
report. A file that differs from its manifest does.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from prefect_assay.analysis.report.orders import OrderFacts
from prefect_assay.analysis.results import (
    from_csv,
    make_table,
    read_results,
    to_csv,
)
from prefect_assay.analysis.results.row import ResultRow
from prefect_assay.analysis.tables.reread import read_archived_mapping
from prefect_assay.archive.archived import Manifest
from prefect_assay.archive.layout import TABLE_PATH, safe_path
from prefect_assay.archive.read import ArchivedVersion
from prefect_assay.foreign_text import safe_link
from prefect_assay.service.models.answer_json import is_open_link
from prefect_assay.service.models.base import Model
from prefect_assay.service.models.experiment import Experiment
from prefect_assay.service.models.result import Result
from prefect_assay.service.models.spec import ExperimentSpec
from prefect_assay.service.models.vocabulary import ResultsStatus


class ReportedResult(Model):
    """One result. `package` is the path of its data package in the version; None: there is no such file."""

    id: str
    title: str | None
    created_at: datetime | None
    package: str | None
    attribution: str | None = None


class ReportedExperiment(Model):
    """One archived experiment. `batch_index` counts from 0; `price_per_sequence_cents` is without VAT, per design."""

    code: str
    manifest: Manifest
    manifest_sha256: str
    batch_index: int | None
    status: str | None
    url: str | None
    created_at: datetime | None
    spec: ExperimentSpec | None
    target: str | None
    order: OrderFacts | None
    results: tuple[ReportedResult, ...]
    rows: tuple[ResultRow, ...]
    notes: tuple[str, ...] = ()

    @property
    def price_per_sequence_cents(self) -> float | None:
        """The experiment's price over its sequences, controls included."""
        amount = self.order.amount_cents if self.order else None
        if amount is None or not self.spec or not self.spec.sequences:
            return None
        return amount / len(self.spec.sequences)


def reported_experiment(
    version: ArchivedVersion, orders: Mapping[str, OrderFacts], indices: Mapping[str, int]
) -> ReportedExperiment:
    """Read one version; `indices` are the batch indices of a plan, by order key.

    Raises:
        ArchiveError: a file is unreadable, or is not what the manifest says.
    """
    manifest = version.manifest
    spec = _read_spec(version)
    record = _read_record(version)
    results, unread = read_results(_read_raw(version, "results"))
    order = _find_order(version, orders)
    table, notes = _make_rows(version, results, spec, unread)
    described = record.experiment_spec if record else None
    return ReportedExperiment(
        code=manifest.experiment_code,
        manifest=manifest,
        manifest_sha256=version.manifest_sha256,
        batch_index=indices.get(order.order_key) if order and order.order_key else None,
        status=str(record.status) if record else None,
        url=_find_page(record.experiment_url) if record else None,
        created_at=record.created_at if record else None,
        spec=spec,
        target=_name_target(described),
        order=order,
        results=tuple(_describe_result(version, result) for result in results),
        rows=table,
        notes=tuple(f"Experiment {manifest.experiment_code}: {note}" for note in notes),
    )


def _read_json(version: ArchivedVersion, path: str) -> Any:
    """A JSON file of the version; None without one."""
    return json.loads(version.read(path)) if path in version.files else None


def _read_spec(version: ArchivedVersion) -> ExperimentSpec | None:
    content = _read_json(version, "spec.json")
    try:
        return ExperimentSpec.model_validate(content) if content else None
    except ValidationError:
        return None


def _read_record(version: ArchivedVersion) -> Experiment | None:
    try:
        return Experiment.model_validate(_read_json(version, "raw/experiment.json"))
    except ValidationError:
        return None


def _name_target(described: Mapping[str, Any] | None) -> str | None:
    target = (described or {}).get("target")
    name = target.get("name") if isinstance(target, dict) else None
    return name if isinstance(name, str) else None


def _find_page(url: str | None) -> str | None:
    """The experiment's page, which asks for a sign-in."""
    return None if is_open_link("", url) else safe_link(url)


def _find_order(version: ArchivedVersion, orders: Mapping[str, OrderFacts]) -> OrderFacts | None:
    experiment_id = version.manifest.experiment_id
    return next((facts for facts in orders.values() if facts.experiment_id == experiment_id), None)


def _read_raw(version: ArchivedVersion, name: str) -> dict[str, bytes]:
    """The raw answers of a list, by file name."""
    paths = (path for path in sorted(version.files) if path.startswith(f"raw/{name}-"))
    return {path.removeprefix("raw/"): version.read(path) for path in paths}


def _make_rows(
    version: ArchivedVersion,
    results: tuple[Result, ...],
    spec: ExperimentSpec | None,
    unread: tuple[str, ...],
) -> tuple[tuple[ResultRow, ...], list[str]]:
    """The tidy rows, made again of the answers, and what is to be known about them."""
    archived = version.read(TABLE_PATH) if TABLE_PATH in version.files else None
    if not results and archived is not None:
        return from_csv(archived), []
    manifest = version.manifest
    table, unread_lines = make_table(
        results,
        spec,
        experiment_code=manifest.experiment_code,
        sequences=_read_raw(version, "sequences").values(),
        complete=manifest.results_status == ResultsStatus.ALL,
        has_unread_answers=bool(unread),
        mapping=read_archived_mapping(version),
    )
    notes = [*unread, *unread_lines]
    notes += [
        f"the data package of result {result.id} could not be fetched, so its curves are missing. Run the campaign again "
        "to fetch it"
        for result in results
        if safe_path(f"packages/{result.id}.absent.json") in version.files
    ]
    if archived is not None and archived != to_csv(table):
        notes.append(
            "another version of prefect-assay wrote its results.csv; the values of this report are read again from "
            "the laboratory's answers, and differ in places"
        )
    return table, notes


def _describe_result(version: ArchivedVersion, result: Result) -> ReportedResult:
    package = safe_path(f"packages/{result.id}.zip")
    attribution = result.metadata.get("attribution")
    return ReportedResult(
        id=result.id,
        title=result.title,
        created_at=result.created_at,
        package=package if package in version.files else None,
        attribution=attribution if isinstance(attribution, str) else None,
    )
