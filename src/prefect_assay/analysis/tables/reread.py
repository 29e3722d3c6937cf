"""Make the table of archived experiments again from their raw answers: with a mapping, or after an upgrade that reads more.

A table that differs becomes a new version next to the old one, with the same raw files and the mapping it was made with.
"""

import json
import tempfile
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from prefect_assay.analysis.results import make_table, read_results, to_csv
from prefect_assay.analysis.results.mapping import MAPPING_PATH, ResultMapping, read_mapping
from prefect_assay.analysis.tables.files import list_experiment_folders, write_newest_table
from prefect_assay.archive import (
    ArchivedVersion,
    Document,
    Measurement,
    Store,
    archive_version,
    ro_crate,
)
from prefect_assay.archive.archived import ArchiveRecord
from prefect_assay.archive.layout import CAMPAIGN_CODES, CRATE_NAME, TABLE_PATH, safe_prefix
from prefect_assay.archive.read import read_newest_version
from prefect_assay.archive.store import json_bytes, save_chunks
from prefect_assay.errors import ArchiveError, ConfigurationError, InputError
from prefect_assay.service.models.base import Model
from prefect_assay.service.models.spec import ExperimentSpec
from prefect_assay.service.models.vocabulary import ResultsStatus

SPEC_PATH: Final = "spec.json"
_JSON: Final = "application/json"


class RereadExperiment(Model):
    """What became of one experiment: its newest version (None: it has no results that can be read), and notes on it."""

    experiment_code: str
    campaign_id: str
    record: ArchiveRecord | None = None
    notes: tuple[str, ...] = ()


def reread_experiments(
    store: Store,
    prefix: str,
    *,
    now: datetime,
    campaign_id: str | None = None,
    experiment_code: str | None = None,
    mapping: ResultMapping | None = None,
) -> tuple[RereadExperiment, ...]:
    """Read the raw answers of archived experiments again, of one campaign or of all.

    Args:
        store: the archive's store.
        prefix: of the archive in the store.
        now: the time of a new version.
        campaign_id: one campaign only.
        experiment_code: one experiment only.
        mapping: replaces the one that a version was made with; None keeps it.

    Raises:
        InputError: there is no such experiment.
        ArchiveError: a file cannot be read or is not what was archived, or the archive refuses.
    """
    made = tuple(
        _reread_version(store, prefix, version, mapping, now)
        for version in _list_newest_versions(store, prefix, campaign_id)
        if campaign_id in {None, version.manifest.campaign_id}
        and experiment_code in {None, version.manifest.experiment_code}
    )
    if not made:
        raise InputError(
            f"{store.location(safe_prefix(prefix))} has no archived experiment"
            f"{f' {experiment_code}' if experiment_code else ''}{f' of campaign {campaign_id}' if campaign_id else ''}; "
            "`prefect-assay archive verify` lists what is there"
        )
    return made


def read_archived_mapping(version: ArchivedVersion) -> ResultMapping | None:
    """The mapping that a version's table was made with, or None.

    Raises:
        ArchiveError: it cannot be read.
    """
    if MAPPING_PATH not in version.files:
        return None
    place = f"{version.location}/{MAPPING_PATH}"
    try:
        return read_mapping(version.read(MAPPING_PATH), place)
    except InputError as error:
        raise ArchiveError(
            f"{error}; upgrade, or give the mapping again with results --reread --mapping"
        ) from None


def make_mapping_document(mapping: ResultMapping) -> Document:
    """The mapping as a file of a version."""
    body = json_bytes(mapping.model_dump(mode="json", exclude_defaults=True)["assays"])
    return Document(path=MAPPING_PATH, content_type=_JSON, body=body)


def describe_measurement(spec: ExperimentSpec) -> Measurement:
    """What a version's description says of its order."""
    return Measurement(
        experiment_type=spec.experiment_type,
        method=spec.method,
        target=spec.target_id,
        designs=len(spec.sequences),
    )


def _list_newest_versions(store: Store, prefix: str, campaign_id: str | None) -> Iterator[ArchivedVersion]:
    """The newest complete version of each experiment, in the order of their folders."""
    for folder in list_experiment_folders(store, prefix, campaign_id):
        newest = read_newest_version(store, folder)
        if newest is not None and newest.manifest.experiment_code not in CAMPAIGN_CODES:
            yield newest


def _reread_version(
    store: Store, prefix: str, version: ArchivedVersion, mapping: ResultMapping | None, now: datetime
) -> RereadExperiment:
    manifest = version.manifest
    one = RereadExperiment(experiment_code=manifest.experiment_code, campaign_id=manifest.campaign_id)
    answers = {
        path.removeprefix("raw/"): version.read(path)
        for path in sorted(version.files)
        if path.startswith("raw/results-")
    }
    if not answers:
        return one.model_copy(update={"notes": (f"{version.location} has no answers with results",)})
    results, unread = read_results(answers)
    spec = _read_spec(version)
    mapping = mapping or read_archived_mapping(version)
    table = make_table(
        results,
        spec,
        experiment_code=manifest.experiment_code,
        sequences=[version.read(path) for path in sorted(version.files) if path.startswith("raw/sequences-")],
        complete=manifest.results_status == ResultsStatus.ALL,
        has_unread_answers=bool(unread),
        mapping=mapping,
    )
    with tempfile.TemporaryDirectory(prefix="assay-") as folder:
        record = archive_version(
            store,
            prefix,
            campaign_id=manifest.campaign_id,
            experiment_id=manifest.experiment_id,
            experiment_code=manifest.experiment_code,
            results_status=manifest.results_status,
            documents=[
                *_list_kept_documents(version, Path(folder)),
                Document(path=TABLE_PATH, content_type="text/csv", body=to_csv(table.rows)),
                *([make_mapping_document(mapping)] if mapping else []),
            ],
            now=now,
            crate=partial(ro_crate, about=describe_measurement(spec)) if spec else None,
        )
    notes = [*unread, *table.notes]
    try:
        write_newest_table(store, prefix, manifest.campaign_id, manifest.experiment_code)
    except ConfigurationError as error:
        notes.append(f"not in the tables: {error}")
    return one.model_copy(update={"record": record, "notes": tuple(notes)})


def _list_kept_documents(version: ArchivedVersion, folder: Path) -> Iterator[Document]:
    """Every file of a version but its table, mapping and description, with the bytes that were archived."""
    for number, (path, file) in enumerate(sorted(version.files.items())):
        if path not in {TABLE_PATH, MAPPING_PATH, CRATE_NAME}:
            body = folder / str(number)
            digest = save_chunks(version.stream(path), body)
            yield Document(
                path=path, content_type=file.content_type, body=body, links=file.links, digest=digest
            )


def _read_spec(version: ArchivedVersion) -> ExperimentSpec | None:
    try:
        stored: Any = json.loads(version.read(SPEC_PATH)) if SPEC_PATH in version.files else None
        return ExperimentSpec.model_validate(stored) if stored else None
    except (ValueError, ValidationError):
        return None
