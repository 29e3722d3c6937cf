"""The table of all candidates of loops: `TABLES/candidates/<loop>/<round>.parquet`, one file per round.

A file says what was decided on each candidate of a round, and does not change. Later results are joined when it is
read. A million candidates pass through in batches. Knows no loop: the rows are given.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from prefect_assay.analysis.results.formats import import_pyarrow
from prefect_assay.analysis.tables.files import MEDIA_TYPE, fit_schema, open_parquet
from prefect_assay.analysis.tables.rows import import_compute
from prefect_assay.archive import Store
from prefect_assay.archive.formats import table_metadata
from prefect_assay.archive.layout import candidates_folder, candidates_key, is_table
from prefect_assay.archive.store import save_chunks
from prefect_assay.archive.verify import Finding
from prefect_assay.designs.candidate import METHOD, PARENT_COLUMNS, method_of
from prefect_assay.designs.selection import REASON_COLUMN, Fate
from prefect_assay.errors import ArchiveError, ArchiveUnavailable, NewerFormat

_BATCH: Final = 50_000  # rows in memory
_BOUGHT: Final = (Fate.CHOSEN.value, Fate.CONTROL.value)


class ProposedRound(NamedTuple):
    """What all candidates of a round share. `pool` is the key of the proposals as they came, below the loop's folder."""

    loop_id: str
    round_number: int  # from 1
    round_name: str
    campaign_id: str
    proposed_at: datetime
    origin: str
    pool: str
    policy: str | None
    seed: int | None


class ProposedCandidate(NamedTuple):
    """One candidate. `score` is the policy's, `price_cents` the estimate without VAT when it was chosen.

    `sequence` and `columns` (a JSON object of the designer's columns) are set for chosen candidates only; those of the
    others are in the round's pool.
    """

    name: str
    sequence_sha256: str
    fate: str
    reason: str
    control: bool
    method: str | None = None
    parents: tuple[str, ...] = ()
    rank: int | None = None
    score: float | None = None
    price_cents: int | None = None
    sequence: str | None = None
    columns: str | None = None


class Proposals(NamedTuple):
    """How many candidates of a round, controls left out, had one method and one fate."""

    loop_id: str
    round_number: int
    method: str | None
    fate: str
    candidates: int


class Decision(NamedTuple):
    """A chosen candidate: the designer's columns with `loop`, `round`, and why it was chosen."""

    control: bool
    attributes: dict[str, str]
    sequence: str | None


def digest_sequence(residues: str) -> str:
    """The SHA-256 (hex) of the residues in upper case without white space: how a candidate finds its results."""
    return hashlib.sha256("".join(residues.split()).upper().encode("utf-8", "surrogatepass")).hexdigest()


def write_candidates(
    store: Store, prefix: str, of: ProposedRound, candidates: Iterable[ProposedCandidate]
) -> str:
    """Write the file of a round, or write it again; its address.

    Raises:
        ConfigurationError: the extra `parquet` is not installed.
        ArchiveError: the archive refuses.
    """
    with TemporaryDirectory(prefix="assay-") as folder:
        path = Path(folder) / "candidates.parquet"
        _write_file(path, of, iter(candidates))
        key = candidates_key(prefix, of.loop_id, of.round_number)
        store.replace(key, path, MEDIA_TYPE)
    return store.location(key)


def check_candidates(store: Store, prefix: str) -> Iterator[Finding]:
    """Read every file of candidates to its end, and report those that are damaged.

    Raises:
        ArchiveUnavailable: the archive cannot be read now.
    """
    for key in _list_keys(store, prefix):
        try:
            with _open_file(store, key) as file:
                for _ in file.iter_batches(_BATCH):
                    pass
        except ArchiveUnavailable:
            raise
        except NewerFormat as error:
            yield Finding.describe_unreadable(key, error)
        except ArchiveError as error:
            yield Finding(kind="changed", key=key, detail=error.message)


def read_proposals(store: Store, prefix: str, loop_id: str | None = None) -> tuple[Proposals, ...]:
    """The number of candidates per round, method and fate, of one loop or of all; empty without any file."""
    counts: Counter[tuple[Any, ...]] = Counter()
    columns = ["loop_id", "round_number", "method", "fate", "control"]
    for batch in _read_batches(store, prefix, loop_id, ~import_compute().field("control"), columns):
        counts.update(zip(*(column.to_pylist() for column in batch.columns[:-1]), strict=True))
    order = sorted(counts, key=lambda row: tuple(str(value).rjust(6) for value in row))
    return tuple(Proposals._make((*row, counts[row])) for row in order)


def read_decisions(
    store: Store, prefix: str, loop_id: str | None = None
) -> Mapping[str, Mapping[str, Mapping[str, Decision]]]:
    """All chosen candidates: by campaign id, sequence digest and name; the same residues may have another tag."""
    decisions: dict[str, dict[str, dict[str, Decision]]] = {}
    is_bought = import_compute().field("fate").isin(_BOUGHT)
    for batch in _read_batches(store, prefix, loop_id, is_bought):
        for row in batch.to_pylist():
            named = decisions.setdefault(row["campaign_id"], {}).setdefault(row["sequence_sha256"], {})
            named[row["name"]] = Decision(row["control"], _read_attributes(row), row["sequence"])
    return decisions


def _read_batches(
    store: Store, prefix: str, loop_id: str | None, condition: Any, columns: list[str] | None = None
) -> Iterator[Any]:
    """The rows that fit a condition, with these columns; those that another version did not write are empty."""
    pa = import_pyarrow()
    schema = pa.schema([_make_schema(pa).field(name) for name in columns or _make_schema(pa).names])
    for key in _list_keys(store, prefix, loop_id):
        with _open_file(store, key) as file:
            written = [name for name in schema.names if name in file.schema_arrow.names]
            for batch in file.iter_batches(_BATCH, columns=written):
                yield from fit_schema(pa.Table.from_batches([batch]), schema).filter(condition).to_batches()


def _read_attributes(row: Mapping[str, Any]) -> dict[str, str]:
    columns: dict[str, str] = json.loads(row["columns"] or "{}")
    decided = {
        METHOD: None if method_of(columns) else row["method"],
        "loop": row["loop_id"],
        "round": row["round_number"],
        "selection_rank": row["rank"],
        "selection_score": row["score"],
        REASON_COLUMN: row["reason"],
        PARENT_COLUMNS[0]: "; ".join(row["parents"] or ()),
    }
    return {**columns, **{title: str(value) for title, value in decided.items() if value not in {None, ""}}}


def _list_keys(store: Store, prefix: str, loop_id: str | None = None) -> list[str]:
    import_pyarrow()
    return sorted(filter(is_table, store.keys(candidates_folder(prefix, loop_id))))


@contextmanager
def _open_file(store: Store, key: str) -> Iterator[Any]:
    with TemporaryDirectory(prefix="assay-") as folder:
        path = Path(folder) / "candidates.parquet"
        save_chunks(store.stream(key), path)
        with open_parquet(path, store.location(key)) as file:
            yield file


def _write_file(path: Path, of: ProposedRound, candidates: Iterator[ProposedCandidate]) -> None:
    from pyarrow import parquet  # noqa: PLC0415  an optional extra

    pa = import_pyarrow()
    schema = _make_schema(pa)
    with parquet.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:
        while batch := list(islice(candidates, _BATCH)):
            shared = [[value] * len(batch) for value in of]
            columns = zip(schema, [*shared, *zip(*batch, strict=True)], strict=True)
            arrays = [pa.array(values, type=field.type) for field, values in columns]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _make_schema(pa: Any) -> Any:
    kinds = {
        **dict.fromkeys(("round_number", "seed", "rank", "price_cents"), pa.int64()),
        "proposed_at": pa.timestamp("us", tz="UTC"),
        "control": pa.bool_(),
        "score": pa.float64(),
        "parents": pa.list_(pa.string()),
    }
    titles = (*ProposedRound._fields, *ProposedCandidate._fields)
    return pa.schema([(title, kinds.get(title, pa.string())) for title in titles], metadata=table_metadata())
