"""The log of a loop in the archive: which designs each round measures, and how each round ended.

Layout: `<prefix>/LOOPS/<loop>/000001.json`, ... and `.../POOLS/<sha256><suffix>`, the proposals as they came. A record
is written with conditional create, as those of the ledgers. Of two runs that decide on one round, the first decides for
both, and a repeat reads what was decided. So a round is never proposed, selected or ordered twice, whatever becomes of
Prefect.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Final, Literal

from pydantic import AwareDatetime, Field, TypeAdapter

from prefect_assay.archive.layout import LOOPS_FOLDER, safe_name, safe_prefix
from prefect_assay.archive.store import Store, chunks_of, digest_of, join_key, save_chunks
from prefect_assay.designs.candidate import Candidate
from prefect_assay.designs.options import AS_WRITTEN, ReadingOptions
from prefect_assay.designs.proposed import pool_of
from prefect_assay.designs.read import read_pool, read_sequences
from prefect_assay.designs.selection import Choice, KeptFates
from prefect_assay.errors import ArchiveError, ConfigurationError, InvalidSpec
from prefect_assay.orders.ledger.log import Log, Record
from prefect_assay.service.models.base import Model, StoredModel
from prefect_assay.service.models.sequences import Pool, Sequences

POOLS_FOLDER: Final = "POOLS"
CANDIDATES_SUFFIX: Final = ".jsonl"  # candidates of a function, one JSON object a line
_ADDRESS: Final = re.compile(r"loop:(?P<loop>[^/]+)/(?P<number>\d+)")
_SUFFIX: Final = re.compile(r"\.[a-z0-9]{1,8}")


class PoolFile(StoredModel):
    """Proposed designs as they came. `name` is what people know the file by; `key` is relative to the loop's folder."""

    name: str
    key: str
    sha256: str
    size: int
    designs: int


class RoundFixed(Record):
    """The decision on one round. Without `choices` all designs of the pool are measured.

    `limit_cents` is what the round may cost without asking, from the loop's budget; without one a person is asked. `counts` is what became of how many
    candidates, `fates` of each one of the pool, read by `reading`; `method_column` is the selection's.
    """

    kind: Literal["round"] = "round"
    loop_id: str
    number: int  # from 1
    name: str
    campaign_id: str
    origin: str
    pool: PoolFile
    choices: tuple[Choice, ...] = ()
    policy: str | None = None
    seed: int | None = None
    counts: dict[str, int] = Field(default_factory=dict)
    notes: tuple[str, ...] = ()
    limit_cents: int | None = None
    fates: KeptFates | None = None
    reading: ReadingOptions = AS_WRITTEN
    method_column: str | None = None

    @property
    def designs(self) -> int:
        """How many designs are measured."""
        return len(self.choices) or self.pool.designs


class RoundEnded(Record):
    """The end of one round with a table. `best` is in the unit of the loop's objective; None: nothing was measured.

    `start` is the time of the record `started` in the loop's campaign log under which it was measured.
    """

    kind: Literal["ended"] = "ended"
    number: int
    table: str
    rows: int
    best: float | None = None
    best_kd_M: float | None = None  # noqa: N815 - M is the unit
    spent_cents: int = 0
    measured: bool = True  # the laboratory could say something about at least one design
    problem: str | None = None
    start: AwareDatetime | None = None


class RoundFailed(Record):
    """A round was tried and has no table, and why. The next start of the loop tries it again; see `RoundEnded.start`."""

    kind: Literal["failed"] = "failed"
    number: int
    problem: str
    start: AwareDatetime | None = None


LoopRecord = Annotated[RoundFixed | RoundEnded | RoundFailed, Field(discriminator="kind")]
_RECORDS: Final[TypeAdapter[LoopRecord]] = TypeAdapter(LoopRecord)


class Round(Model):
    """One round as the log has it; without an end it is running or waiting, or its last trial has failed."""

    fixed: RoundFixed
    ended: RoundEnded | None = None
    failed: RoundFailed | None = None

    def has_failed_under(self, start: datetime) -> bool:
        """Return True if this start of the loop has tried the round in vain; a later start tries it again."""
        return self.ended is None and self.failed is not None and self.failed.start == start

    @property
    def problem(self) -> str | None:
        """Why the round has no table or not all of its results."""
        last = self.ended or self.failed
        return last.problem if last else None


class LoopState(Model):
    """The rounds by number, after `count` records."""

    count: int = 0
    rounds: tuple[Round, ...] = ()

    def next(self, record: LoopRecord) -> "LoopState":
        """The state after one more record; ArchiveError for a record that contradicts the log."""
        index = record.number - 1
        if isinstance(record, RoundFixed):
            valid = index == len(self.rounds) and record.campaign_id not in self.campaigns
            rounds = (*self.rounds, Round(fixed=record))
        else:
            valid = 0 <= index < len(self.rounds) and self.rounds[index].ended is None
            rounds = tuple(
                r.model_copy(update={record.kind: record}) if valid and i == index else r
                for i, r in enumerate(self.rounds)
            )
        if not valid:
            raise ArchiveError(
                f"record {self.count + 1} of the loop, about round {record.number}, contradicts those before it; "
                "nothing new was ordered. Restore the loop's folder from a backup of the archive"
            )
        return LoopState(count=self.count + 1, rounds=rounds)

    @property
    def campaigns(self) -> tuple[str, ...]:
        """The campaign ids, in the order of the rounds."""
        return tuple(r.fixed.campaign_id for r in self.rounds)


class LoopLog:
    """The log of one loop."""

    def __init__(self, store: Store, prefix: str, loop_id: str) -> None:
        self.store = store
        self.loop_id = loop_id
        self.folder = join_key(safe_prefix(prefix), LOOPS_FOLDER, safe_name(loop_id))
        self.state = LoopState()
        self._log: Log[RoundFixed | RoundEnded | RoundFailed] = Log(store, self.folder, _RECORDS)

    @property
    def location(self) -> str:
        """The loop's folder, for people."""
        return self.store.location(self.folder)

    def read(self) -> LoopState:
        """The state after all records that exist now."""
        state = self.state
        for record in self._log.read(state.count + 1, all_of_it=not state.count):
            state = state.next(record)
        self.state = state
        return state

    def fix(self, record: RoundFixed) -> RoundFixed:
        """Decide on the next round; returns the decision that counts: this one, or that of a run that came first."""
        while True:
            state = self.read()
            if len(state.rounds) >= record.number:
                return state.rounds[record.number - 1].fixed
            state.next(record)  # what contradicts the log is never written
            self._log.append(state.count + 1, record)

    def end(self, record: RoundEnded) -> RoundEnded:
        """Note the end of a round, once; returns the one that counts."""
        while True:
            state = self.read()
            noted = state.rounds[record.number - 1].ended
            if noted is not None:
                return noted
            self._log.append(state.count + 1, record)

    def fail(self, record: RoundFailed) -> None:
        """Note why a round has no table, unless it has one by now or this start has noted the same."""
        while True:
            state = self.read()
            noted = state.rounds[record.number - 1]
            same = noted.failed and (noted.failed.problem, noted.failed.start) == (
                record.problem,
                record.start,
            )
            if noted.ended or same:
                return
            self._log.append(state.count + 1, record)

    def keep_file(self, path: Path, name: str, designs: int) -> PoolFile:
        """Keep a file of designs under its content's name."""
        digest = digest_of(chunks_of(path))
        suffix = Path(name).suffix.lower()
        key = f"{POOLS_FOLDER}/{digest.sha256}{suffix if _SUFFIX.fullmatch(suffix) else ''}"
        self.store.put_if_absent(
            join_key(self.folder, key), path, "application/octet-stream", sha256=digest.sha256
        )
        return PoolFile(name=name, key=key, sha256=digest.sha256, size=digest.size, designs=designs)

    def save_candidates(self, candidates: Iterable[Candidate], name: str) -> PoolFile:
        """Keep the candidates of a function, one line each."""
        lines = [candidate.model_dump_json() for candidate in candidates]
        body = "".join(f"{line}\n" for line in lines).encode()
        sha256 = hashlib.sha256(body).hexdigest()
        key = f"{POOLS_FOLDER}/{sha256}{CANDIDATES_SUFFIX}"
        self.store.put_if_absent(join_key(self.folder, key), body, "application/jsonl", sha256=sha256)
        return PoolFile(name=name, key=key, sha256=sha256, size=len(body), designs=len(lines))

    @contextmanager
    def opened_pool(self, pool: PoolFile) -> Iterator[Path]:
        """A copy of a pool as a file, which is deleted afterwards; ArchiveError if it is not what was kept."""
        key = join_key(self.folder, pool.key)
        with TemporaryDirectory(prefix="assay-") as folder:
            path = Path(folder) / f"pool{Path(pool.key).suffix}"
            if save_chunks(self.store.stream(key), path).sha256 != pool.sha256:
                raise ArchiveError(f"{self.store.location(key)} has changed; restore it from a backup")
            yield path

    def read_candidates(self, pool: PoolFile) -> Iterator[Candidate]:
        """Read every proposed design of a round, whether it was chosen or not."""
        with self.opened_pool(pool) as path:
            if path.suffix == CANDIDATES_SUFFIX:
                with path.open(encoding="utf-8") as lines:
                    yield from (Candidate.model_validate(json.loads(line)) for line in lines)
            else:
                yield from map(Candidate.of, read_pool(str(path)))

    def proposed(self, fixed: RoundFixed) -> Pool:
        """The pool of a round as it was when the round was fixed: `fixed.fates` is in its order."""
        if fixed.pool.key.endswith(CANDIDATES_SUFFIX):
            return pool_of(self.read_candidates(fixed.pool), fixed.pool.name)
        with self.opened_pool(fixed.pool) as path:
            return read_pool(str(path), reading=fixed.reading)

    def designs(self, number: int, reading: ReadingOptions) -> Sequences:
        """The designs that a round measures.

        Raises:
            InvalidSpec: they were chosen from a file that `reading` reads differently.
        """
        state = self.read()
        if not 0 < number <= len(state.rounds):
            raise ConfigurationError(
                f"loop {self.loop_id} has no round {number} in this archive ({self.location}); nothing was ordered. "
                "Use the archive block of the loop"
            )
        fixed = state.rounds[number - 1].fixed
        source = f"loop {self.loop_id}, round {number}: {fixed.pool.name}"
        if not fixed.choices:
            with self.opened_pool(fixed.pool) as path:
                return read_sequences(source, data=path.read_bytes(), reading=reading)
        if not fixed.pool.key.endswith(CANDIDATES_SUFFIX):
            _require_reading(fixed, reading)
        return Sequences(source=source, items=tuple(choice.design() for choice in fixed.choices))


def _require_reading(fixed: RoundFixed, reading: ReadingOptions) -> None:
    """Raise InvalidSpec for a round whose chosen designs have other names or residues under this reading."""
    changed = fixed.reading.list_other_designs(reading)
    if changed:
        finding = (
            f"reading: the designs of round {fixed.number} were chosen with another {', '.join(changed)} than the loop has now; "
            "nothing new was ordered. Choose another loop id, or start the loop with the reading of before"
        )
        raise InvalidSpec([finding])


def designs_address(loop_id: str, number: int) -> str:
    """What a campaign takes as its designs, for a round of a loop in its own archive."""
    return f"loop:{loop_id}/{number}"


def of_designs_address(designs: str) -> tuple[str, int] | None:
    """The loop and the round of such an address; None for any other source."""
    match = _ADDRESS.fullmatch(designs)
    return (match["loop"], int(match["number"])) if match else None
