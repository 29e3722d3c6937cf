"""Which results of a history are of the target that a pool is for; those of other targets count as far as they fit."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from prefect_assay.analysis.results import DesignSummary
from prefect_assay.designs.selection import SelectionSettings
from prefect_assay.errors import InputError
from prefect_assay.service.models.sequences import Pool

_COLUMN: Final = "target"
_LISTED: Final = 5


def numbered(
    pool: Pool, designs: Sequence[DesignSummary], settings: SelectionSettings
) -> tuple[list[int], tuple[str, ...]]:
    """A number for the target of each design, 0 for the target of the pool, and a note where the history does not know it.

    A design whose target is not said counts as of the pool's.

    Raises:
        InputError: the target that is named is not in the history, which names others, or the pool is for several targets.
    """
    found = [_key(design.target or _cell(design.attributes)) for design in designs]
    named = Counter(filter(None, found))
    own = _own(pool, named, settings)
    notes: tuple[str, ...] = ()
    if named and own not in named:
        listed = ", ".join(repr(target) for target, _ in named.most_common(_LISTED))
        notes = (
            f"target {own!r}: the history has no result of it, but of {listed}; if one of them is the same target, name it with --target",
        )
    places = {target: place for place, target in enumerate(sorted(set(named) - {own}), start=1)}
    return [places.get(target, 0) for target in found], notes


def _own(pool: Pool, named: Mapping[str, int], settings: SelectionSettings) -> str:
    if settings.target is not None:
        return _key(settings.target)
    cells = {_key(_cell(pool.unpack(extra))) for extra in pool.extras if extra} if named else set()
    of_pool = cells - {""}
    if len(of_pool) > 1:
        listed = ", ".join(sorted(of_pool)[:_LISTED])
        raise InputError(
            f"{pool.source}: the candidates are for several targets ({listed}); select for each in turn"
        )
    if of_pool:
        return of_pool.pop()
    if len(named) < 2:  # noqa: PLR2004 - one target
        return next(iter(named), "")
    listed = ", ".join(f"{target!r} ({count})" for target, count in Counter(named).most_common(_LISTED))
    raise InputError(
        f"the history has results of {len(named)} targets, {listed}, and {pool.source} does not say which one it is for; name "
        "it with --target, or in a column target"
    )


def _cell(attributes: Mapping[str, str]) -> str:
    return next((cell for title, cell in attributes.items() if title.casefold() == _COLUMN), "")


def _key(target: str) -> str:
    return " ".join(target.split()).casefold()
