"""Which results of a history are of the target that a pool is for: only these count.

On 18 measured targets the results of all other targets changed no purchase, so they are left out.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from prefect_assay.analysis.results import DesignSummary
from prefect_assay.analysis.results.repeats import normalize_target
from prefect_assay.designs.selection import SelectionSettings
from prefect_assay.errors import InputError
from prefect_assay.service.models.sequences import Pool
from prefect_assay.service.words import many

_COLUMN: Final = "target"
_LISTED: Final = 5


def take_results_of_target(
    pool: Pool, designs: Sequence[DesignSummary], settings: SelectionSettings
) -> tuple[list[DesignSummary], bool, list[str]]:
    """The designs that were measured on the target of the pool, whether one of them names it, and a note on others.

    A design that names no target is one of them.

    Raises:
        InputError: the target is not named and the history has several, or the pool is for several targets.
    """
    targets = [normalize_target(design.target or _read_target(design.attributes)) for design in designs]
    counts = Counter(filter(None, targets))
    of_pool = _find_target(pool, counts, settings)
    taken = [design for design, target in zip(designs, targets, strict=True) if target in ("", of_pool)]
    notes = []
    if counts and of_pool not in counts:
        listed = ", ".join(repr(target) for target, _ in counts.most_common(_LISTED))
        notes = [
            f"target {of_pool!r}: the history has no result of it, but of {listed}; if one of them is the same target, name it with --target"
        ]
    elif len(taken) < len(designs):
        others = many(len(counts.keys() - {of_pool}), "other target")
        notes = [f"{len(designs) - len(taken)} results of {others} do not count"]
    return taken, of_pool in counts, notes


def _find_target(pool: Pool, counts: Mapping[str, int], settings: SelectionSettings) -> str:
    if settings.target is not None:
        return normalize_target(settings.target)
    cells = (
        {normalize_target(_read_target(pool.unpack(extra))) for extra in pool.extras if extra}
        if counts
        else set()
    )
    of_pool = cells - {""}
    if len(of_pool) > 1:
        listed = ", ".join(sorted(of_pool)[:_LISTED])
        raise InputError(
            f"{pool.source}: the candidates are for several targets ({listed}); select for each in turn"
        )
    if of_pool:
        return of_pool.pop()
    if len(counts) < 2:  # noqa: PLR2004 - one target
        return next(iter(counts), "")
    listed = ", ".join(f"{target!r} ({count})" for target, count in Counter(counts).most_common(_LISTED))
    raise InputError(
        f"the history has results of {len(counts)} targets, {listed}, and {pool.source} does not say which one it is for; name "
        "it with --target, or in a column target"
    )


def _read_target(attributes: Mapping[str, str]) -> str:
    return next((cell for title, cell in attributes.items() if title.casefold() == _COLUMN), "")
