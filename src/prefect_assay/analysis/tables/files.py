"""Write and check the all-campaign tables: Parquet files that hold the newest version of each report and each experiment.

`TABLES/designs/<campaign>.parquet` is the summary table of a campaign's report, `TABLES/results/<campaign>/<code>.parquet`
the laboratory's rows of an experiment. A file is replaced when a newer version is archived. The versions are the
truth: each file follows from one version alone, and can be written again at any time.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from prefect_assay.analysis.results import from_csv
from prefect_assay.analysis.results.formats import import_pyarrow, make_row_schema, write_parquet
from prefect_assay.analysis.results.tables import make_summary_schema, read_summary_json
from prefect_assay.archive import ArchivedVersion, Store
from prefect_assay.archive.formats import refuse_newer_table, table_metadata
from prefect_assay.archive.layout import (
    CAMPAIGN_CODES,
    MANIFEST_NAME,
    REPORT_CODE,
    TABLE_PATH,
    candidates_folder,
    experiment_folder,
    is_table,
    safe_name,
    safe_prefix,
    table_key,
    tables_folder,
    version_of,
)
from prefect_assay.archive.read import read_newest_version
from prefect_assay.archive.store import join_key
from prefect_assay.archive.verify import Finding
from prefect_assay.errors import ArchiveError, ArchiveUnavailable, AssayError, NewerFormat
from prefect_assay.service.models.base import Model

SUMMARY_PATH: Final = "summary.json"  # `summary.csv` is for spreadsheets, which change texts
MEDIA_TYPE: Final = "application/vnd.apache.parquet"
WRITE_AGAIN: Final = "run `prefect-assay archive tables`"

_EXPERIMENT: Final = "raw/experiment.json"
_OF_DESIGNS: Final = ("version", "manifest_sha256", "archived_at")  # after the columns of `summary.csv`
_OF_RESULTS: Final = (  # before the columns of `results.csv`
    *("campaign_id", "experiment_id", "version", "results_status", "manifest_sha256", "archived_at"),
    *("target", "target_id"),
)


class Source(NamedTuple):
    """The version that a file of the tables is made of, from the file's metadata."""

    campaign_id: str
    experiment_code: str
    version: int
    archived_at: datetime


class UpdatedTables(Model):
    """The files of the tables after an update: how many there are, how many were written, a line per unusable version."""

    files: int
    written: int
    notes: tuple[str, ...] = ()


def write_newest_table(store: Store, prefix: str, campaign_id: str, experiment_code: str) -> bool:
    """Write the newest version of an experiment or a report to its table; False if the table agrees already.

    Of runs that write at the same time each looks for a newer version after it has written. So the newest version stays.

    Raises:
        ConfigurationError: the extra `parquet` is not installed.
        ArchiveError: the archive refuses, or the version's table is not readable.
    """
    import_pyarrow()
    return bool(_write_newest(store, experiment_folder(prefix, campaign_id, experiment_code)))


def update_tables(store: Store, prefix: str) -> UpdatedTables:
    """Write all tables that do not agree with the newest versions in the archive.

    Raises:
        ConfigurationError: the extra `parquet` is not installed.
        ArchiveError: the archive cannot be listed.
    """
    import_pyarrow()  # before the first listing
    files, written, notes = 0, 0, []
    for folder in list_experiment_folders(store, prefix):
        try:
            is_written = _write_newest(store, folder)
        except AssayError as error:
            notes.append(f"{store.location(folder)} is not in the tables: {error}")
        else:
            files += is_written is not None
            written += bool(is_written)
    return UpdatedTables(files=files, written=written, notes=tuple(notes))


def check_tables(store: Store, prefix: str) -> Iterator[Finding]:
    """Compare the tables with the newest versions in the archive; an archive without tables has no findings.

    `outdated` is a table that lacks the newest version, `changed` one with other rows than its version has.

    Raises:
        ArchiveUnavailable: the archive cannot be read now.
    """
    present = {key for key in store.keys(tables_folder(prefix)) if is_table(key)}
    if not present:
        return
    import_pyarrow()
    expected = set[str]()
    for folder in list_experiment_folders(store, prefix):
        expected.add(table_key(folder))
        try:
            yield from _check_table(store, folder)
        except ArchiveUnavailable:
            raise
        except (ArchiveError, ValueError):
            continue  # the version is damaged, which `verify` reports
    for key in sorted(present - expected):
        if not key.startswith(f"{candidates_folder(prefix)}/"):
            yield Finding(kind="foreign", key=key, detail="no complete version in the archive has these rows")


def list_experiment_folders(store: Store, prefix: str, campaign_id: str | None = None) -> list[str]:
    """The folders below the prefix that have a complete version, of experiments and of documents of campaigns."""
    root = safe_prefix(prefix)
    folders = set[str]()
    for key in store.keys(join_key(root, safe_name(campaign_id)) if campaign_id else root):
        path = key.removeprefix(f"{root}/") if root else key
        campaign, code, version, *rest = [*path.split("/"), "", ""]
        if rest == [MANIFEST_NAME, "", ""] and version_of(version):
            folders.add(join_key(root, campaign, code))
    return sorted(folders)


def read_table(store: Store, key: str, schema: Any) -> tuple[Source, Any]:
    """A file of the tables as a `pyarrow.Table` with the columns of the schema, and the version it is made of.

    A column that another version of this package did not write is empty, and one that it added is left out.

    Raises:
        ArchiveError: the file is damaged.
        NewerFormat: a later version of this package wrote it.
    """
    with open_parquet(store.read(key), store.location(key)) as file:
        source = _find_source(file.schema_arrow.metadata, store.location(key))
        return source, fit_schema(file.read(use_threads=False), schema)


@contextmanager
def open_parquet(content: bytes | Path, location: str) -> Iterator[Any]:
    """A file of the tables as a `pyarrow.parquet.ParquetFile`, which compares each page with its checksum.

    Raises:
        ArchiveError: it is damaged.
        NewerFormat: a later version of this package wrote it.
    """
    from pyarrow import ArrowException, parquet  # noqa: PLC0415  an optional extra

    # A file object of Python may abort the interpreter at its end (apache/arrow#33975).
    source = import_pyarrow().BufferReader(content) if isinstance(content, bytes) else content
    try:
        with parquet.ParquetFile(source, page_checksum_verification=True) as file:
            refuse_newer_table(file.schema_arrow.metadata, location)
            yield file
    except (ArrowException, OSError) as error:
        raise ArchiveError(
            f"{location} cannot be read: {error}; {WRITE_AGAIN}, which writes it again"
        ) from None


def fit_schema(table: Any, schema: Any) -> Any:
    """The columns of the schema: those that another version did not write are empty, and those that it added are left out.

    Raises:
        pyarrow.ArrowException: a column has values that its type cannot hold.
    """
    pa = import_pyarrow()
    columns = [
        table.column(field.name).cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def make_results_schema() -> Any:
    """The Arrow schema of `results`: where a row comes from, then the columns of `results.csv`."""
    return _make_schema([*_make_typed(_OF_RESULTS), *make_row_schema()])


def make_designs_schema() -> Any:
    """The Arrow schema of `designs`: the columns of `summary.csv`, the designer's own as JSON, then the report's version."""
    return _make_schema([*make_summary_schema(), *_make_typed(("columns", *_OF_DESIGNS))])


def _make_typed(names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    pa = import_pyarrow()
    kinds = {"version": pa.int64(), "archived_at": pa.timestamp("us", tz="UTC")}
    return ((name, kinds.get(name, pa.string())) for name in names)


def _make_schema(columns: Iterable[tuple[str, Any]]) -> Any:
    return import_pyarrow().schema(list(columns), metadata=table_metadata())


def _write_newest(store: Store, folder: str) -> bool | None:
    """See `write_newest_table`; None where the folder has no version that belongs in a table."""
    is_written = None
    version = read_newest_version(store, folder)
    while version is not None:
        table = _make_table(version)
        if table is None:
            break
        body = store.find(table_key(folder))
        if body is not None and _is_newest(body, store.location(table_key(folder)), table):
            return bool(is_written)
        store.replace(table_key(folder), write_parquet(table), MEDIA_TYPE)
        is_written = True
        newest = read_newest_version(store, folder)
        if newest is None or newest.manifest.version == version.manifest.version:
            break
        version = newest
    return is_written


def _check_table(store: Store, folder: str) -> Iterator[Finding]:
    version, key = read_newest_version(store, folder), table_key(folder)
    table = _make_table(version) if version else None
    if version is None or table is None:
        return
    body = store.find(key)
    if body is None:
        yield Finding(kind="outdated", key=key, detail=f"not there; {WRITE_AGAIN}")
    elif not _is_newest(body, store.location(key), table):
        try:
            number = read_table(store, key, table.schema)[0].version
        except NewerFormat as error:
            yield Finding.describe_unreadable(key, error)
            return
        except ArchiveUnavailable:
            raise
        except ArchiveError:
            number = version.manifest.version
        if number == version.manifest.version:
            detail = f"not the rows of {version.location}; {WRITE_AGAIN}, which writes them again"
            yield Finding(kind="changed", key=key, detail=detail)
        else:
            detail = f"has version {number}, and the newest is {version.manifest.version}; {WRITE_AGAIN}"
            yield Finding(kind="outdated", key=key, detail=detail)


def _is_newest(body: bytes, location: str, table: Any) -> bool:
    """Return True if a file has exactly this table, whichever pyarrow wrote it."""
    try:
        with open_parquet(body, location) as file:
            written = file.read(use_threads=False)
    except ArchiveError:
        return False
    # Metadata of lists is not compared: their elements have another name in Parquet.
    return bool(written.equals(table) and written.schema.metadata == table.schema.metadata)


def _find_source(metadata: dict[bytes, bytes] | None, location: str) -> Source:
    values = {name.decode(): value.decode() for name, value in (metadata or {}).items()}
    try:
        archived_at = datetime.fromisoformat(values["archived_at"])
        return Source(values["campaign_id"], values["experiment_code"], int(values["version"]), archived_at)
    except (KeyError, ValueError):
        raise ArchiveError(
            f"{location} does not say of what version it is; {WRITE_AGAIN}, which writes it again"
        ) from None


def _make_table(version: ArchivedVersion) -> Any:
    """The table of a version; None where it is neither an experiment nor a report."""
    manifest = version.manifest
    if manifest.experiment_code == REPORT_CODE:
        rows = _make_design_rows(version) if SUMMARY_PATH in version.files else None
        schema = make_designs_schema()
    else:
        has_rows = manifest.experiment_code not in CAMPAIGN_CODES and TABLE_PATH in version.files
        rows = _make_result_rows(version) if has_rows else None
        schema = make_results_schema()
    if rows is None:
        return None
    source = {
        "campaign_id": manifest.campaign_id,
        "experiment_code": manifest.experiment_code,
        "version": str(manifest.version),
        "archived_at": manifest.created_at.isoformat(),
    }
    schema = schema.with_metadata({**table_metadata(), **source})
    return import_pyarrow().Table.from_pylist(rows, schema=schema)


def _make_result_rows(version: ArchivedVersion) -> list[dict[str, Any]]:
    """The rows of `results.csv`, each with the columns that say where it comes from."""
    manifest = version.manifest
    target, target_id = _read_target(version)
    values = {
        "campaign_id": manifest.campaign_id,
        "experiment_id": manifest.experiment_id,
        "results_status": manifest.results_status,
        "target": target,
        "target_id": target_id,
        **_describe_origin(version),
    }
    return [values | row.model_dump(mode="json") for row in from_csv(version.read(TABLE_PATH))]


def _make_design_rows(version: ArchivedVersion) -> list[dict[str, Any]]:
    """The rows of the summary table; the designer's columns are one JSON object."""
    origin = _describe_origin(version)
    return [
        design.model_dump(mode="json", exclude={"attributes"})
        | {"columns": json.dumps(design.attributes, ensure_ascii=False)}
        | origin
        for design in read_summary_json(version.read(SUMMARY_PATH))
    ]


def _describe_origin(version: ArchivedVersion) -> dict[str, Any]:
    manifest = version.manifest
    values = (manifest.version, version.manifest_sha256, manifest.created_at)
    return dict(zip(_OF_DESIGNS, values, strict=True))


def _read_target(version: ArchivedVersion) -> tuple[str | None, str | None]:
    """Name and catalog id of the target in the experiment's record; None for what it does not have."""
    if _EXPERIMENT not in version.files:
        return None, None
    try:
        value: Any = json.loads(version.read(_EXPERIMENT))
    except ValueError:
        return None, None
    for field in ("experiment_spec", "target"):
        value = value.get(field) if isinstance(value, dict) else None
    record = value if isinstance(value, dict) else {}
    name, catalog_id = (record.get(field) for field in ("name", "target_catalog_id"))
    return (name if isinstance(name, str) else None), (catalog_id if isinstance(catalog_id, str) else None)
