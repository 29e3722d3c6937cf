"""The candidates of loops in the lake: `LAKE/candidates/loop=.../round=.../part-v001-<SHA-256>.parquet`, one file per round.

A file says what was decided on each candidate of a round, and is never changed. Later results are joined when it is
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

from prefect_assay.analysis.lake.parts import MEDIA_TYPE, fit_schema
from prefect_assay.analysis.lake.query import compute_module
from prefect_assay.analysis.results.formats import pyarrow_module
from prefect_assay.archive import Store
from prefect_assay.archive.formats import lake_metadata, refuse_newer_lake
from prefect_assay.archive.layout import candidate_part, candidates_folder, lake_key
from prefect_assay.archive.store import chunks_of, digest_of, save
from prefect_assay.designs.candidate import METHOD, PARENT_COLUMNS, method_of
from prefect_assay.designs.selection import REASON_COLUMN, Fate
from prefect_assay.errors import ArchiveError

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


def sequence_digest(residues: str) -> str:
    """The SHA-256 (hex) of the residues in upper case without white space: how a candidate finds its results."""
    return hashlib.sha256("".join(residues.split()).upper().encode("utf-8", "surrogatepass")).hexdigest()


def candidates_location(store: Store, prefix: str, loop_id: str, number: int) -> str | None:
    """The address of a round's file, or None."""
    folder = candidates_folder(prefix, loop_id, number)
    return next((store.location(key) for key in store.keys(folder) if candidate_part(key)), None)


def add_candidates(
    store: Store, prefix: str, of: ProposedRound, candidates: Iterable[ProposedCandidate]
) -> str:
    """Write the file of a round, unless there is one; its address.

    Raises:
        ConfigurationError: the extra `parquet` is not installed.
        ArchiveError: the archive refuses.
    """
    existing = candidates_location(store, prefix, of.loop_id, of.round_number)
    if existing is not None:
        return existing
    with TemporaryDirectory(prefix="assay-") as folder:
        path = Path(folder) / "part.parquet"
        _write(path, of, iter(candidates))
        sha256 = digest_of(chunks_of(path)).sha256
        key = lake_key(candidates_folder(prefix, of.loop_id, of.round_number), 1, sha256)
        store.put_if_absent(key, path, MEDIA_TYPE, sha256=sha256)
    return store.location(key)


def proposals(store: Store, prefix: str, loop_id: str | None = None) -> tuple[Proposals, ...]:
    """The number of candidates per round, method and fate, of one loop or of all; empty without any file."""
    found: Counter[tuple[Any, ...]] = Counter()
    columns = ["loop_id", "round_number", "method", "fate", "control"]
    for file in _parts(store, prefix, loop_id):
        for batch in _batches(file, columns):
            *own, control = (column.to_pylist() for column in batch.columns)
            found.update(
                row for row, is_control in zip(zip(*own, strict=True), control, strict=True) if not is_control
            )
    order = sorted(found, key=lambda row: tuple(str(value).rjust(6) for value in row))
    return tuple(Proposals._make((*row, found[row])) for row in order)


def chosen(
    store: Store, prefix: str, loop_id: str | None = None
) -> Mapping[str, Mapping[str, Mapping[str, Decision]]]:
    """All chosen candidates: by campaign id, sequence digest and name; the same residues may have another tag."""
    found: dict[str, dict[str, dict[str, Decision]]] = {}
    for file in _parts(store, prefix, loop_id):
        for batch in _batches(file):
            for row in batch.filter(_is_bought(batch)).to_pylist():
                own = found.setdefault(row["campaign_id"], {}).setdefault(row["sequence_sha256"], {})
                own[row["name"]] = Decision(row["control"], _attributes(row), row["sequence"])
    return found


def _batches(file: Any, columns: list[str] | None = None) -> Iterator[Any]:
    """The rows of a file in batches, with these columns; those that another version did not write are empty."""
    pa = pyarrow_module()
    schema = _schema(pa)
    wanted = pa.schema([schema.field(name) for name in columns or schema.names])
    known = [name for name in wanted.names if name in file.schema_arrow.names]
    for batch in file.iter_batches(_BATCH, columns=known):
        table = fit_schema(pa.Table.from_batches([batch]), wanted)
        yield from table.to_batches()


def _attributes(row: Mapping[str, Any]) -> dict[str, str]:
    own: dict[str, str] = json.loads(row["columns"] or "{}")
    decided = {
        METHOD: None if method_of(own) else row["method"],
        "loop": row["loop_id"],
        "round": row["round_number"],
        "selection_rank": row["rank"],
        "selection_score": row["score"],
        REASON_COLUMN: row["reason"],
        PARENT_COLUMNS[0]: "; ".join(row["parents"] or ()),
    }
    given = {title: str(value) for title, value in decided.items() if value not in {None, ""}}
    return {**own, **given}


def _is_bought(batch: Any) -> Any:
    return compute_module().is_in(batch.column("fate"), value_set=pyarrow_module().array(_BOUGHT))


def _parts(store: Store, prefix: str, loop_id: str | None) -> Iterator[Any]:
    """The files as `pyarrow.parquet.ParquetFile`, each compared with the digest in its name; one per round."""
    pyarrow_module()
    parts = (
        (part, key) for key in store.keys(candidates_folder(prefix, loop_id)) if (part := candidate_part(key))
    )
    rounds = {part[:2]: key for part, key in sorted(parts)}
    for key in rounds.values():
        with _opened(store, key) as file:
            yield file


@contextmanager
def _opened(store: Store, key: str) -> Iterator[Any]:
    from pyarrow import ArrowException, parquet  # noqa: PLC0415  an optional extra

    part = candidate_part(key)
    with TemporaryDirectory(prefix="assay-") as folder:
        path = Path(folder) / "part.parquet"
        digest = save(store.stream(key), path)
        if part is None or digest.sha256 != part.sha256:
            raise ArchiveError(
                f"{store.location(key)} is not what was written; delete it, then run `prefect-assay archive lake`"
            )
        try:
            with parquet.ParquetFile(path) as opened:
                refuse_newer_lake(opened.schema_arrow.metadata, store.location(key))
                yield opened
        except ArrowException as error:
            raise ArchiveError(f"{store.location(key)} cannot be read by this pyarrow: {error}") from None


def _write(path: Path, of: ProposedRound, candidates: Iterator[ProposedCandidate]) -> None:
    from pyarrow import parquet  # noqa: PLC0415  an optional extra

    pa = pyarrow_module()
    schema = _schema(pa)
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while batch := list(islice(candidates, _BATCH)):
            shared = [[value] * len(batch) for value in of]
            columns = zip(schema, [*shared, *zip(*batch, strict=True)], strict=True)
            arrays = [pa.array(values, type=field.type) for field, values in columns]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _schema(pa: Any) -> Any:
    kinds = {
        **dict.fromkeys(("round_number", "seed", "rank", "price_cents"), pa.int64()),
        "proposed_at": pa.timestamp("us", tz="UTC"),
        "control": pa.bool_(),
        "score": pa.float64(),
        "parents": pa.list_(pa.string()),
    }
    titles = (*ProposedRound._fields, *ProposedCandidate._fields)
    return pa.schema([(title, kinds.get(title, pa.string())) for title in titles], metadata=lake_metadata())
