"""Compare the logs of loops with themselves and with the pools that they name. Writes nothing."""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Final

from prefect_assay.archive.layout import LOOPS_FOLDER, safe_prefix
from prefect_assay.archive.store import Store, digest_of, join_key
from prefect_assay.archive.verify import Finding
from prefect_assay.campaigns.loops.candidates import loop_id_of
from prefect_assay.campaigns.loops.loop_log import POOLS_FOLDER, LoopLog
from prefect_assay.errors import ArchiveError, ArchiveUnavailable, ConfigurationError

_RECORD: Final = re.compile(r"(\d{6})\.json")
_POOL: Final = re.compile(r"([0-9a-f]{64})(\.[a-z0-9]{1,8})?")


def check_loops(store: Store, prefix: str = "") -> Iterator[Finding]:
    """The discrepancies of all loops of an archive: lost and unreadable records, lost and changed pools."""
    root = join_key(safe_prefix(prefix), LOOPS_FOLDER)
    below = (key for key in store.keys(root) if "/" in key.removeprefix(f"{root}/"))
    for folder, keys in groupby(below, lambda key: _loop_folder(root, key)):
        yield from _check_loop(store, prefix, folder, {key.removeprefix(f"{folder}/") for key in keys})


def _loop_folder(root: str, key: str) -> str:
    return join_key(root, key.removeprefix(f"{root}/").partition("/")[0])


def _check_loop(store: Store, prefix: str, folder: str, names: set[str]) -> Iterator[Finding]:
    digests: dict[str, str] = {}
    for name in sorted(names):
        pools, _, file = name.partition("/")
        match = _POOL.fullmatch(file)
        if pools != POOLS_FOLDER or match is None:
            continue
        key = join_key(folder, name)
        try:
            digests[name] = digest_of(store.stream(key)).sha256
        except ArchiveUnavailable:
            raise
        except ArchiveError as error:
            yield Finding.describe_unreadable(key, error)
            continue
        if digests[name] != match[1]:
            detail = f"SHA-256 {digests[name][:12]}…, not that of its name; restore it from a backup"
            yield Finding(kind="changed", key=key, detail=detail)
    numbers = {int(match[1]) for name in names if (match := _RECORD.fullmatch(name))}
    absent = [number for number in range(1, max(numbers, default=0)) if number not in numbers]
    # A run may be writing: a record is lost only if a read by name does not find it.
    lost = [key for number in absent if store.stat(key := join_key(folder, f"{number:06d}.json")) is None]
    for key in lost:
        detail = "a record of the loop's log, and a later one is there; restore it from a backup"
        yield Finding(kind="missing", key=key, detail=detail)
    if numbers and not lost:
        yield from _check_log(store, prefix, folder, digests)


def _check_log(store: Store, prefix: str, folder: str, digests: dict[str, str]) -> Iterator[Finding]:
    try:
        loop_log = LoopLog(store, prefix, loop_id_of(store, folder))
        if loop_log.folder != folder:
            detail = f"its records are those of loop {loop_log.loop_id}"
            yield Finding(kind="misplaced", key=folder, detail=detail)
            return
        rounds = loop_log.read().rounds
    except ArchiveUnavailable:
        raise
    except (ArchiveError, ConfigurationError) as error:
        yield Finding.describe_unreadable(folder, error)
        return
    for pool, named in {entry.fixed.pool.key: entry.fixed for entry in rounds}.items():
        key = join_key(folder, pool)
        if pool not in digests and store.stat(key) is None:
            detail = f"the designs that were proposed for round {named.number}; restore it from a backup"
            yield Finding(kind="missing", key=key, detail=detail)
        elif pool in digests and named.pool.sha256 not in pool:
            yield Finding(kind="changed", key=key, detail=f"round {named.number} names another SHA-256")
