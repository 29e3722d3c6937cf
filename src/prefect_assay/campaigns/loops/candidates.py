"""Writes the candidates of each round to the all-campaign tables: what was decided on each and why, from the loop's log and pools."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from prefect.logging import get_run_logger

from prefect_assay.analysis.results.formats import import_pyarrow
from prefect_assay.analysis.tables.candidates import (
    ProposedCandidate,
    ProposedRound,
    check_candidates,
    digest_sequence,
    write_candidates,
)
from prefect_assay.analysis.tables.files import UpdatedTables
from prefect_assay.archive.layout import LOOPS_FOLDER, candidates_folder, candidates_key, safe_prefix
from prefect_assay.archive.store import Store, join_key
from prefect_assay.campaigns.loops.loop_log import LoopLog, RoundFixed
from prefect_assay.designs.candidate import Candidate, method_of, parents_of
from prefect_assay.designs.selection import Choice, Fate
from prefect_assay.errors import ArchiveError, AssayError, ConfigurationError
from prefect_assay.service.models.sequences import Pool
from prefect_assay.service.words import many

NOT_REACHED: Final = "not_reached"  # the round took the first designs, in their order
DUPLICATE: Final = "duplicate"
_FIRST: Final = "000001.json"
_WHOLE: Final = "all designs of the file are measured"
_REASONS: Final[Mapping[str, str]] = {
    Fate.MEASURED: "its residues were measured or ordered before",
    Fate.NO_SCORE: "it has no score",
    Fate.METHOD_LIMIT: "enough designs of its method were chosen",
    Fate.PARENT_LIMIT: "enough designs of one of its parents were chosen",
    Fate.CLUSTER_LIMIT: "a similar design was chosen",
    Fate.RANKED_LOWER: "others ranked higher",
    NOT_REACHED: "the designs before it filled the round",
}


def write_round(store: Store, prefix: str, fixed: RoundFixed) -> str:
    """Write the candidates of a round, or write them again; the address of their file.

    Raises:
        ConfigurationError: the extra `parquet` is not installed.
        ArchiveError: the archive refuses, or the round's pool has changed.
        InvalidSequences: this version cannot read the pool.
    """
    import_pyarrow()
    shared = ProposedRound(
        loop_id=fixed.loop_id,
        round_number=fixed.number,
        round_name=fixed.name,
        campaign_id=fixed.campaign_id,
        proposed_at=fixed.at,
        origin=fixed.origin,
        pool=fixed.pool.key,
        policy=fixed.policy,
        seed=fixed.seed,
    )
    return write_candidates(
        store, prefix, shared, _list_candidates(LoopLog(store, prefix, fixed.loop_id), fixed)
    )


def try_to_write_round(store: Store, prefix: str, fixed: RoundFixed) -> None:
    """Write the candidates of a round unless they are there, in a run, whose log names a failure.

    Nothing that can be made again may end the run.
    """
    try:
        if store.stat(candidates_key(prefix, fixed.loop_id, fixed.number)) is None:
            write_round(store, prefix, fixed)
    except ConfigurationError as error:
        get_run_logger().info("Not in the tables: %s", error)
    except Exception as error:  # noqa: BLE001  see above
        get_run_logger().error(
            "Round %d is not in the tables: %s. `prefect-assay archive tables` adds it later",
            fixed.number,
            error,
        )


def update_candidates(store: Store, prefix: str) -> UpdatedTables:
    """Write the candidates of all rounds of loops in the archive whose file is absent or damaged."""
    import_pyarrow()
    damaged = {finding.key for finding in check_candidates(store, prefix) if finding.is_damage}
    sound = {*store.keys(candidates_folder(prefix))} - damaged
    files, written, notes = 0, 0, []
    for folder in _list_loops(store, prefix):
        try:
            loop_id = loop_id_of(store, folder)
            for entry in LoopLog(store, prefix, loop_id).read().rounds:
                if candidates_key(prefix, loop_id, entry.fixed.number) not in sound:
                    write_round(store, prefix, entry.fixed)
                    written += 1
                files += 1
        except AssayError as error:
            notes.append(f"{store.location(folder)} is not completely in the tables: {error}")
    return UpdatedTables(files=files, written=written, notes=tuple(notes))


def _list_loops(store: Store, prefix: str) -> list[str]:
    """The folders of all loops with a record."""
    root = join_key(safe_prefix(prefix), LOOPS_FOLDER)
    return sorted(
        key.removesuffix(f"/{_FIRST}")
        for key in store.keys(root)
        if key.endswith(f"/{_FIRST}") and key.removeprefix(f"{root}/").count("/") == 1
    )


def loop_id_of(store: Store, folder: str) -> str:
    """The loop's own name; that of its folder may be another, safe one."""
    key = join_key(folder, _FIRST)
    try:
        return str(json.loads(store.read(key))["loop_id"])
    except (ValueError, KeyError, TypeError):
        raise ArchiveError(
            f"{store.location(key)} is not a record of a loop; restore it from a backup"
        ) from None


def _list_candidates(loop_log: LoopLog, fixed: RoundFixed) -> Iterator[ProposedCandidate]:
    """The pool in its order, then the designs that have the residues of another one."""
    named = frozenset(choice.candidate.name for choice in fixed.choices)
    pool = loop_log.proposed(fixed).keeping(named)  # as the selection, whose best of duplicates counts
    fates = _list_fates(loop_log, fixed, pool)
    chosen = {choice.candidate.name: choice for choice in fixed.choices}
    for index, (name, residues, extra) in enumerate(zip(pool.names, pool.residues, pool.extras, strict=True)):
        attributes = pool.unpack(extra) if extra else {}
        facts: dict[str, Any] = {
            "name": name,
            "sequence_sha256": digest_sequence(residues),
            "method": method_of(attributes, fixed.method_column),
            "parents": parents_of(attributes),
        }
        choice = chosen.get(name)
        if choice is not None or not fixed.choices:
            yield _make_candidate(
                facts, choice or Choice(candidate=Candidate.of(pool[index]), rank=index + 1, reason=_WHOLE)
            )
        else:
            fate = fates[index]
            reason = _REASONS.get(fate, fate.replace("_", " "))
            yield ProposedCandidate(**facts, fate=fate, reason=reason, control=index in pool.controls)
    yield from _list_duplicates(pool)


def _make_candidate(facts: Mapping[str, Any], choice: Choice) -> ProposedCandidate:
    candidate = choice.candidate
    return ProposedCandidate(
        **facts,
        fate=Fate.CONTROL if candidate.control else Fate.CHOSEN,
        reason=choice.reason,
        control=candidate.control,
        rank=choice.rank,
        score=choice.score,
        price_cents=choice.price_cents,
        sequence=candidate.sequence,
        columns=json.dumps(candidate.columns, ensure_ascii=False, sort_keys=True)
        if candidate.columns
        else None,
    )


def _list_duplicates(pool: Pool) -> Iterator[ProposedCandidate]:
    kept = {same_as for _, same_as in pool.duplicates}
    digests = {
        name: digest_sequence(residues)
        for name, residues in zip(pool.names, pool.residues, strict=True)
        if name in kept
    }
    for name, same_as in pool.duplicates:
        reason = f"same residues as {' '.join(same_as.split())}"
        yield ProposedCandidate(name, digests[same_as], DUPLICATE, reason, control=False)


def _list_fates(loop_log: LoopLog, fixed: RoundFixed, pool: Pool) -> list[str]:
    """What became of each candidate of the pool, in its order."""
    if fixed.fates is None:
        return [NOT_REACHED] * len(pool)
    try:
        fates = [fixed.fates.words[place] for place in fixed.fates.unpacked()]
    except (ValueError, IndexError) as error:
        raise ArchiveError(
            f"the fates of round {fixed.number} in {loop_log.location} cannot be read: {error}"
        ) from None
    if len(fates) != len(pool):
        raise ArchiveError(
            f"round {fixed.number} in {loop_log.location} was fixed with {many(len(fates), 'candidate')}, and this version reads "
            f"{len(pool)} from its pool; use the version that fixed it"
        )
    return fates
