"""Read the table `results` of all campaigns: the laboratory's rows, filtered and sorted.

The files are read through the archive's store, so a bucket needs no second set of credentials.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, Final

from pydantic import Field

from prefect_assay.analysis.results import Level, Outcome, ResultRow, from_csv
from prefect_assay.analysis.results.formats import import_pyarrow
from prefect_assay.analysis.results.row import read_row
from prefect_assay.analysis.results.summary import is_of_lab, list_counted_replicates
from prefect_assay.analysis.tables.files import WRITE_AGAIN, Source, make_results_schema, read_table
from prefect_assay.archive import ArchivedVersion, Store
from prefect_assay.archive.layout import (
    CAMPAIGN_CODES,
    LEDGERS_FOLDER,
    MANIFEST_NAME,
    TABLE_PATH,
    VERSIONS_FOLDER,
    experiment_folder,
    is_table,
    results_folder,
    safe_name,
    safe_prefix,
    tables_folder,
    version_folder,
    version_of,
)
from prefect_assay.archive.read import parse_manifest
from prefect_assay.archive.store import join_key
from prefect_assay.errors import ArchiveError
from prefect_assay.service.models.base import Model

_READERS: Final = 8  # requests at once


class Query(Model):
    """Which rows. Texts are compared without regard to case; `name` and `target` may be a part of it."""

    campaign: str | None = None
    experiment: str | None = None
    target: str | None = None
    name: str | None = None
    result_type: str | None = None
    outcome: Outcome | None = None
    replicates: bool = False
    limit: int | None = Field(default=None, ge=1)


def query_rows(store: Store, prefix: str, query: Query) -> Any:
    """The laboratory's rows as a `pyarrow.Table`, with the columns of docs/results.md.

    Measured designs come first by K_D, lower limits after all others, then the other outcomes; empty values are last.

    ```python
    from prefect_assay.analysis.tables.rows import Query, query_rows
    from prefect_assay.archive import LocalStore

    rows = query_rows(LocalStore("assay-archive"), "", Query(target="EGFR", limit=20)).to_pylist()
    ```

    Raises:
        ConfigurationError: the extra `parquet` is not installed.
        ArchiveError: the archive has no such table, or one of its files is damaged.
    """
    tables = read_results(store, prefix, query.campaign)
    if not tables:
        raise describe_no_results(store, prefix, query.campaign)
    matching = (_filter_rows(table, query) for table in tables.values())
    return _sort_rows(import_pyarrow().concat_tables(matching)).slice(0, query.limit)


def read_results(store: Store, prefix: str, campaign_id: str | None = None) -> dict[Source, Any]:
    """The rows of each experiment as a `pyarrow.Table`, of all campaigns or of one, by the version they are from.

    Raises:
        ConfigurationError: the extra `parquet` is not installed.
        ArchiveError: a file of the table is damaged.
    """
    schema = make_results_schema()
    folder = tables_folder(prefix, "results") if campaign_id is None else results_folder(prefix, campaign_id)
    keys = sorted(filter(is_table, store.keys(folder)))
    with ThreadPoolExecutor(_READERS) as readers:
        return dict(readers.map(lambda key: read_table(store, key, schema), keys))


def read_earlier_replicates(
    store: Store, prefix: str, campaign_id: str, before: datetime, *, simulated: bool = False
) -> tuple[ResultRow, ...]:
    """The replicates that count and that other campaigns had archived before a moment, of the newest version that each experiment had then.

    Where a table has a later version, the one from before is read from the archive. Experiments of a local lab are read where
    `simulated` asks for them, and then alone.

    Raises:
        ConfigurationError: the extra `parquet` is not installed.
        ArchiveError: a file is damaged.
    """
    replicates: list[ResultRow] = []
    for source, table in read_results(store, prefix).items():
        if source.campaign_id == campaign_id:
            continue
        if source.archived_at < before:
            rows = tuple(map(read_row, table.to_pylist()))
        else:
            folder = experiment_folder(prefix, source.campaign_id, source.experiment_code)
            rows = _read_rows_before(store, folder, source.version, before)
        if any(map(is_of_lab, rows)) is simulated:
            replicates += list_counted_replicates(rows)
    return tuple(replicates)


def _read_rows_before(store: Store, folder: str, number: int, before: datetime) -> tuple[ResultRow, ...]:
    """The rows of the newest version below a number that was archived before a moment."""
    for earlier in range(number - 1, 0, -1):
        place = version_folder(folder, earlier)
        key = join_key(place, MANIFEST_NAME)
        body = store.find(key)
        manifest = None if body is None else parse_manifest(body, store.location(key))
        if manifest and manifest.created_at < before:
            return from_csv(ArchivedVersion(store, place, manifest).read(TABLE_PATH))
    return ()


def list_registered_versions(
    store: Store, prefix: str, campaigns: Iterable[str] | None
) -> dict[tuple[str, str], int]:
    """The newest version of each experiment and document, by the folders of its campaign and its code, as registered.

    The number is 0 where the register has another file only, such as the choice of a plan.
    """
    root = join_key(safe_prefix(prefix), LEDGERS_FOLDER, VERSIONS_FOLDER)
    folders = None if campaigns is None else {safe_name(campaign_id) for campaign_id in campaigns}
    newest: defaultdict[tuple[str, str], int] = defaultdict(int)
    for key in store.keys(root):
        campaign, code, name, *_ = [*key.removeprefix(f"{root}/").split("/"), "", ""]
        if folders is None or campaign in folders:
            newest[campaign, code] = max(newest[campaign, code], version_of(name.removesuffix(".json")) or 0)
    return newest


def list_outdated_notes(
    store: Store, prefix: str, registered: Mapping[tuple[str, str], int], sources: Iterable[Source]
) -> Iterator[str]:
    """A line for each experiment whose newest results are not in its table: a run was killed before it wrote them."""
    in_tables = {
        experiment_folder(prefix, source.campaign_id, source.experiment_code): source.version
        for source in sources
    }
    for (campaign, code), number in sorted(registered.items()):
        folder = join_key(safe_prefix(prefix), campaign, code)
        if code in CAMPAIGN_CODES or number <= in_tables.get(folder, 0):
            continue
        if store.stat(join_key(version_folder(folder, number), MANIFEST_NAME)) is not None:  # else moved away
            yield f"campaign {campaign}: {code} has results that are not in the tables; {WRITE_AGAIN}"


def describe_no_results(store: Store, prefix: str, campaign_id: str | None = None) -> ArchiveError:
    """What is wrong where the tables have no rows, of any campaign or of one."""
    what = f"results of campaign {campaign_id}" if campaign_id else "results"
    return ArchiveError(
        f"{store.location(safe_prefix(prefix))} holds no {what} yet. `prefect-assay status` says what is under "
        "way; `prefect-assay archive tables` writes the tables of an archive that has none"
    )


def _filter_rows(table: Any, query: Query) -> Any:
    """The rows of one file that the query asks for."""
    pc = import_compute()
    conditions = [pc.is_valid(pc.field("name"))]
    for column, text in (("name", query.name), ("target", query.target)):
        if text is not None:
            conditions.append(pc.match_substring(pc.field(column), text, ignore_case=True))
    for column, text in (("experiment_code", query.experiment), ("result_type", query.result_type)):
        if text is not None:
            conditions.append(pc.utf8_lower(pc.field(column)) == text.lower())
    if query.outcome is not None:
        conditions.append(pc.field("outcome") == str(query.outcome))
    if not query.replicates:
        conditions.append(pc.field("level") == str(Level.SUMMARY))
    return table.filter(_match_all(conditions))


def _match_all(conditions: Iterable[Any]) -> Any:
    first, *others = conditions
    for condition in others:
        first &= condition
    return first


def _sort_rows(table: Any) -> Any:
    keys = _make_sort_keys(table)
    for name, values in keys.items():
        table = table.append_column(name, values)
    names = (*keys, "campaign_id", "experiment_code", "name")
    return table.sort_by([(name, "ascending") for name in names]).drop_columns([*keys])


def _make_sort_keys(table: Any) -> dict[str, Any]:
    """Columns to sort by, as `summarize` does: a lower limit follows all affinities, and what is not an affinity comes last."""
    pa, pc = import_pyarrow(), import_compute()
    outcomes = pa.array([str(outcome) for outcome in Outcome])
    known = pc.greater(table["kd_M"], 0)
    is_limit = pc.fill_null(pc.equal(table["qualifier"], ">"), fill_value=False)
    return {
        "_rank": pc.index_in(table["outcome"], value_set=outcomes),
        "_is_limit": pc.if_else(known, is_limit, pa.scalar(None, pa.bool_())),
        "_affinity": pc.if_else(known, table["kd_M"], pa.scalar(None, pa.float64())),
    }


def import_compute() -> Any:
    """The module pyarrow.compute, whose functions are made when it is imported, so that no type checker knows them."""
    from pyarrow import compute  # noqa: PLC0415  an optional extra

    return compute
