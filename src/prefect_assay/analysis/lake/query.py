"""Read the lake: the rows of the newest version of each experiment, filtered and sorted.

The files are read through the archive's store, so a bucket needs no second set of credentials. Each is compared with
the digest in its name.
"""

import hashlib
import io
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, Final

from pydantic import Field

from prefect_assay.analysis.lake.parts import fit_schema, result_schema
from prefect_assay.analysis.results import Level, Outcome, ResultRow
from prefect_assay.analysis.results.formats import pyarrow_module
from prefect_assay.analysis.results.row import read_row
from prefect_assay.archive import Store
from prefect_assay.archive.formats import refuse_newer_lake
from prefect_assay.archive.layout import LakePart, lake_folder, lake_part, safe_prefix
from prefect_assay.errors import ArchiveError, InputError
from prefect_assay.service.models.base import Model

_READERS: Final = 8  # requests at once


class Query(Model):
    """Which rows, in which order. Texts are compared without regard to case; `name` and `target` may be a part of it.

    Without `sort` measured designs come first by K_D, lower limits after all others, then the other outcomes; empty values
    are always last.
    """

    campaign: str | None = None
    experiment: str | None = None
    target: str | None = None
    name: str | None = None
    result_type: str | None = None
    outcome: Outcome | None = None
    replicates: bool = False
    all_versions: bool = False
    sort: str | None = None
    descending: bool = False
    limit: int | None = Field(default=None, ge=1)


def query(store: Store, prefix: str, wanted: Query) -> Any:
    """The rows as a `pyarrow.Table`, with the columns of docs/lake.md.

    Raises:
        ConfigurationError: the extra `parquet` is not installed.
        ArchiveError: the archive has no lake, or one of its files is damaged.
        InputError: `sort` is not a column.
    """
    pa = pyarrow_module()
    parts = _parts(store, prefix, wanted)
    with ThreadPoolExecutor(_READERS) as readers:
        tables = readers.map(lambda key: _matching(_read(store, key), wanted), parts)
        table = pa.concat_tables(tables, promote_options="default")
    return _sorted(table, wanted).slice(0, wanted.limit)


def earlier_replicates(
    store: Store, prefix: str, campaign_id: str, before: datetime
) -> tuple[ResultRow, ...]:
    """The replicates that other campaigns had archived before a moment, of the newest version that each experiment had then.

    Raises:
        ConfigurationError: the extra `parquet` is not installed.
        ArchiveError: a file of the lake is damaged.
    """
    if not any(True for _ in store.keys(lake_folder(prefix))):
        return ()
    pc = compute_module()
    table = query(store, prefix, Query(replicates=True, all_versions=True))
    table = table.filter((pc.field("archived_at") < before) & (pc.field("campaign_id") != campaign_id))
    newest = {
        (row["campaign_id"], row["experiment_code"]): row["version"]
        for row in table.select(["campaign_id", "experiment_code", "version"]).sort_by("version").to_pylist()
    }
    return tuple(
        read_row(row)
        for row in table.to_pylist()
        if row["level"] == Level.REPLICATE
        and newest[row["campaign_id"], row["experiment_code"]] == row["version"]
    )


def no_results(store: Store, prefix: str, campaign_id: str | None = None) -> ArchiveError:
    """What is wrong where the lake has nothing, of any campaign or of one."""
    what = f"results of campaign {campaign_id}" if campaign_id else "results"
    return ArchiveError(
        f"{store.location(safe_prefix(prefix))} holds no {what} yet. `prefect-assay status` says what is under way; "
        "`prefect-assay archive lake` writes the lake of an archive from before it had one"
    )


def _parts(store: Store, prefix: str, wanted: Query) -> tuple[str, ...]:
    """The keys to read: one per version, and of the newest version only unless all are wanted."""
    found: dict[LakePart, str] = {}
    folder = lake_folder(prefix, wanted.campaign)
    for key in store.keys(folder):
        if part := lake_part(key):
            found[part] = key
    if not found:
        raise no_results(store, prefix, wanted.campaign)
    chosen: dict[tuple[Any, ...], LakePart] = {}
    for part in sorted(found, key=lambda part: (part.version, part.sha256)):
        chosen[part[: 3 if wanted.all_versions else 2]] = part
    return tuple(sorted(found[part] for part in chosen.values()))


def _read(store: Store, key: str) -> Any:
    from pyarrow import ArrowException, parquet  # noqa: PLC0415  an optional extra

    body = store.read(key)
    part = lake_part(key)
    if part is None or hashlib.sha256(body).hexdigest() != part.sha256:
        raise ArchiveError(
            f"{store.location(key)} is not what was written; delete it, then run `prefect-assay archive lake`"
        )
    try:
        file = parquet.ParquetFile(io.BytesIO(body))
        refuse_newer_lake(file.schema_arrow.metadata, store.location(key))
        return fit_schema(file.read().replace_schema_metadata(), result_schema())
    except ArrowException as error:
        raise ArchiveError(f"{store.location(key)} cannot be read by this pyarrow: {error}") from None


def _matching(table: Any, wanted: Query) -> Any:
    """The rows of one file that are wanted."""
    pc = compute_module()
    conditions = [pc.is_valid(pc.field("name"))]
    for column, text in (("name", wanted.name), ("target", wanted.target)):
        if text is not None:
            conditions.append(pc.match_substring(pc.field(column), text, ignore_case=True))
    for column, text in (("experiment_code", wanted.experiment), ("result_type", wanted.result_type)):
        if text is not None:
            conditions.append(pc.utf8_lower(pc.field(column)) == text.lower())
    if wanted.outcome is not None:
        conditions.append(pc.field("outcome") == str(wanted.outcome))
    if not wanted.replicates:
        conditions.append(pc.field("level") == str(Level.SUMMARY))
    return table.filter(_all(conditions))


def _all(conditions: Iterable[Any]) -> Any:
    first, *others = conditions
    for condition in others:
        first &= condition
    return first


def _sorted(table: Any, wanted: Query) -> Any:
    ties = [("campaign_id", "ascending"), ("experiment_code", "ascending"), ("name", "ascending")]
    if wanted.sort is None:
        keys = _best_first(table)
        ranked = table
        for name, values in keys.items():
            ranked = ranked.append_column(name, values)
        return ranked.sort_by([*((name, "ascending") for name in keys), *ties]).drop_columns([*keys])
    if wanted.sort not in table.column_names:
        raise InputError(f"{wanted.sort!r} is not a column; choose one of {', '.join(table.column_names)}")
    return table.sort_by([(wanted.sort, "descending" if wanted.descending else "ascending"), *ties])


def _best_first(table: Any) -> dict[str, Any]:
    """Columns to sort by, as `summarize` does: a lower limit follows all affinities, and what is no affinity comes last."""
    pa, pc = pyarrow_module(), compute_module()
    outcomes = pa.array([str(outcome) for outcome in Outcome])
    known = pc.greater(table["kd_M"], 0)
    is_limit = pc.fill_null(pc.equal(table["qualifier"], ">"), fill_value=False)
    return {
        "_rank": pc.index_in(table["outcome"], value_set=outcomes),
        "_is_limit": pc.if_else(known, is_limit, pa.scalar(None, pa.bool_())),
        "_affinity": pc.if_else(known, table["kd_M"], pa.scalar(None, pa.float64())),
    }


def compute_module() -> Any:
    """The module pyarrow.compute, whose functions are made when it is imported, so that no type checker knows them."""
    from pyarrow import compute  # noqa: PLC0415  an optional extra

    return compute
