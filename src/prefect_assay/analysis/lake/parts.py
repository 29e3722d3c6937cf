"""Write the lake: one file per archived version, named by its content.

`LAKE/designs/campaign=.../part-v001-<SHA-256>.parquet` is the summary table of a report,
`LAKE/results/campaign=.../experiment=.../part-v001-<SHA-256>.parquet` the laboratory's rows of an experiment.

A file follows from its version alone, is named by its content, and is never changed. A later version of an
experiment adds a file, and readers take the highest version. Parquet of another pyarrow has other bytes; a version that
has a file gets no second one.
"""

import hashlib
import json
from typing import Any, Final

from prefect_assay.analysis.results import from_csv
from prefect_assay.analysis.results.formats import parquet_bytes, pyarrow_module, row_schema
from prefect_assay.analysis.results.tables import read_summary_json, summary_schema
from prefect_assay.archive import ArchivedVersion, Store
from prefect_assay.archive.formats import lake_metadata
from prefect_assay.archive.layout import (
    CAMPAIGN_CODES,
    LAKE_FOLDER,
    MANIFEST_NAME,
    REPORT_CODE,
    TABLE_PATH,
    designs_folder,
    designs_part,
    lake_folder,
    lake_key,
    lake_part,
    safe_prefix,
    version_of,
)
from prefect_assay.archive.read import read_manifest
from prefect_assay.archive.store import join_key
from prefect_assay.errors import AssayError
from prefect_assay.service.models.base import Model

_EXPERIMENT: Final = "raw/experiment.json"
_ORIGIN: Final = (
    *("campaign_id", "experiment_id", "version", "results_status", "manifest_sha256", "archived_at"),
    *("target", "target_id"),
)
SUMMARY_PATH: Final = "summary.json"  # `summary.csv` is for spreadsheets, which change texts
MEDIA_TYPE: Final = "application/vnd.apache.parquet"


class Rebuilt(Model):
    """The files of a lake after `rebuild`: how many there are, how many were written now, a note per unusable version."""

    parts: int
    added: int
    notes: tuple[str, ...] = ()


def add(store: Store, prefix: str, version: ArchivedVersion) -> str | None:
    """Write a version's file, unless there is one; its address, or None where the version is neither an experiment nor a report.

    Raises:
        ConfigurationError: the extra `parquet` is not installed.
        ArchiveError: the archive refuses, or the version's table is not readable.
    """
    manifest = version.manifest
    paths = {file.path for file in manifest.files}
    is_report = manifest.experiment_code == REPORT_CODE and SUMMARY_PATH in paths
    if not is_report and (manifest.experiment_code in CAMPAIGN_CODES or TABLE_PATH not in paths):
        return None
    folder = (
        designs_folder(prefix, manifest.campaign_id)
        if is_report
        else lake_folder(prefix, manifest.campaign_id, manifest.experiment_code)
    )
    for key in store.keys(folder):
        part = designs_part(key) or lake_part(key)
        if part is not None and part.version == manifest.version:
            return store.location(key)
    body = _designs_content(version) if is_report else _content(version)
    sha256 = hashlib.sha256(body).hexdigest()
    key = lake_key(folder, version.manifest.version, sha256)
    store.put_if_absent(key, body, MEDIA_TYPE, sha256=sha256)
    return store.location(key)


def rebuild(store: Store, prefix: str) -> Rebuilt:
    """Write what the lake lacks of all complete versions in the archive; files that exist stay as they are."""
    pyarrow_module()  # before the first listing
    root = safe_prefix(prefix)
    own = join_key(root, LAKE_FOLDER)
    known: set[tuple[str, str, int]] = set()
    found: dict[tuple[str, str, int], str] = {}
    for key in store.keys(root):
        if key.startswith(f"{own}/"):
            if part := lake_part(key) or designs_part(key):
                known.add(part[:3])
        elif place := _version_place(key.removeprefix(f"{root}/") if root else key):
            found[place] = key.removesuffix(f"/{MANIFEST_NAME}")
    added, notes = 0, []
    for place in sorted(found.keys() - known):
        try:
            manifest, _ = read_manifest(store, found[place])
            added += add(store, prefix, ArchivedVersion(store, found[place], manifest)) is not None
        except AssayError as error:
            notes.append(f"{store.location(found[place])} is not in the lake: {error}")
    return Rebuilt(parts=len(known) + added, added=added, notes=tuple(notes))


def _version_place(path: str) -> tuple[str, str, int] | None:
    """Campaign, experiment and version of a manifest's path below the prefix; None for any other path."""
    campaign, code, name, *rest = [*path.split("/"), "", ""]
    version = version_of(name)
    return (campaign, code, version) if version and rest == [MANIFEST_NAME, "", ""] else None


def _content(version: ArchivedVersion) -> bytes:
    """The rows of `results.csv`, each with the columns that say where it comes from."""
    pa = pyarrow_module()
    manifest = version.manifest
    target, target_id = _target(version)
    values = {
        "campaign_id": manifest.campaign_id,
        "experiment_id": manifest.experiment_id,
        "version": manifest.version,
        "results_status": manifest.results_status,
        "manifest_sha256": version.manifest_sha256,
        "archived_at": manifest.created_at,
        "target": target,
        "target_id": target_id,
    }
    rows = [values | row.model_dump(mode="json") for row in from_csv(version.read(TABLE_PATH))]
    return parquet_bytes(pa.Table.from_pylist(rows, schema=result_schema()))


def _designs_content(version: ArchivedVersion) -> bytes:
    """The rows of the summary table, with the version that they are from; the designer's columns are one JSON object."""
    pa = pyarrow_module()
    manifest = version.manifest
    values = {
        "version": manifest.version,
        "manifest_sha256": version.manifest_sha256,
        "archived_at": manifest.created_at,
    }
    rows = [
        design.model_dump(mode="json", exclude={"attributes"})
        | {"columns": json.dumps(design.attributes, ensure_ascii=False)}
        | values
        for design in read_summary_json(version.read(SUMMARY_PATH))
    ]
    kinds = {"version": pa.int64(), "archived_at": pa.timestamp("us", tz="UTC")}
    columns = [*summary_schema(), *((name, kinds.get(name, pa.string())) for name in ("columns", *values))]
    return parquet_bytes(pa.Table.from_pylist(rows, schema=pa.schema(columns, metadata=lake_metadata())))


def result_schema() -> Any:
    """The Arrow schema of a version's file: where a row comes from, then the columns of `results.csv`."""
    pa = pyarrow_module()
    kinds = {"version": pa.int64(), "archived_at": pa.timestamp("us", tz="UTC")}
    columns = [*((name, kinds.get(name, pa.string())) for name in _ORIGIN), *row_schema()]
    return pa.schema(columns, metadata=lake_metadata())


def fit_schema(table: Any, schema: Any) -> Any:
    """The columns of the schema: those that another version did not write are empty, and those that it added are left out.

    Raises:
        pyarrow.ArrowException: a column has values that its type cannot hold.
    """
    pa = pyarrow_module()
    for field in schema:
        place = table.schema.get_field_index(field.name)
        if place < 0:
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
        elif table.schema.field(place).type != field.type:
            table = table.set_column(place, field, table.column(place).cast(field.type))
    return table.select(schema.names)


def _target(version: ArchivedVersion) -> tuple[str | None, str | None]:
    """Name and catalog id of the target in the experiment's record; None for what it does not have."""
    if _EXPERIMENT not in version.files:
        return None, None
    try:
        value: Any = json.loads(version.read(_EXPERIMENT))
    except ValueError:
        return None, None
    for field in ("experiment_spec", "target"):
        value = value.get(field) if isinstance(value, dict) else None
    found = value if isinstance(value, dict) else {}
    name, catalog_id = (found.get(field) for field in ("name", "target_catalog_id"))
    return (name if isinstance(name, str) else None), (catalog_id if isinstance(catalog_id, str) else None)
