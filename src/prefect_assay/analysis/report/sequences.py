"""The sequences of a report: their lengths, and how each differs from its parent or from the nearest measured design. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from prefect_assay.analysis.results.design import DesignSummary
from prefect_assay.analysis.results.row import Outcome
from prefect_assay.designs.candidate import parents_of
from prefect_assay.service.models.base import Model
from prefect_assay.service.models.vocabulary import CHAIN_SEPARATOR

_MEASURED: Final = frozenset({Outcome.MEASURED, Outcome.BINDING, Outcome.NO_BINDING, Outcome.NO_EXPRESSION})
_FAR: Final = (
    0.3  # of the residues: beyond, two designs have nothing in common that a list of changes would show
)
_LISTED: Final = 12
_COMPARED_MAX: Final = 500  # designs: pairs grow with the square


class DesignSequence(Model):
    """One design. `lengths` are of its chains; `changes` are those from `base`, which is its parent or the nearest design."""

    name: str
    residues: str
    lengths: str
    base: str = ""
    is_parent: bool = False
    changes: str = ""


def sequences_of(designs: Sequence[DesignSummary], ordered: Mapping[str, str]) -> tuple[DesignSequence, ...]:
    """The sequences in the order of the designs, each name once; then those that are ordered and have no result."""
    residues = {design.name: ordered.get(design.name) or design.aa_string or "" for design in designs}
    residues |= {name: value for name, value in ordered.items() if name not in residues}
    residues = {name: value.upper() for name, value in residues.items() if value}
    parents = {design.name: parents_of(design.attributes) for design in designs}
    measured = [design.name for design in designs if design.outcome in _MEASURED and design.name in residues]
    bases = dict.fromkeys(measured[:_COMPARED_MAX])
    return tuple(_describe_sequence(name, residues, parents.get(name, ()), bases) for name in residues)


def _describe_sequence(
    name: str, residues: Mapping[str, str], parents: Sequence[str], measured: Mapping[str, None]
) -> DesignSequence:
    """One design's sequence with its changes against its parent, else against the nearest measured design not too far away."""
    sequence = residues[name]
    parent = next((other for other in parents if other in residues and other != name), None)
    candidates = [parent] if parent else [other for other in measured if other != name]
    distances = [(_measure_distance(residues[other], sequence), other) for other in candidates]
    near = [pair for pair in distances if pair[0] <= _FAR * len(sequence)]
    reference = min(near, key=lambda pair: pair[0])[1] if near else None
    return DesignSequence(
        name=name,
        residues=sequence,
        lengths=" + ".join(str(len(chain)) for chain in sequence.split(CHAIN_SEPARATOR)),
        base=reference or parent or next(iter(parents), ""),
        is_parent=bool(parents) and (parent is not None or reference is None),
        changes=list_changes(residues[reference], sequence) if reference else "",
    )


def list_changes(base: str, sequence: str) -> str:
    """`A24G, W31F`; for another length the part that differs: `24-31: ADE to G` (numbers of the base, chains counted through)."""
    base, sequence = base.replace(CHAIN_SEPARATOR, ""), sequence.replace(CHAIN_SEPARATOR, "")
    if len(base) == len(sequence):
        changes = [
            f"{a}{position}{b}"
            for position, (a, b) in enumerate(zip(base, sequence, strict=True), start=1)
            if a != b
        ]
        more = [f"and {len(changes) - _LISTED} more"] if len(changes) > _LISTED else []
        return ", ".join([*changes[:_LISTED], *more]) or "the same residues"
    head, tail = _count_shared(base, sequence)
    old, new = base[head : len(base) - tail], sequence[head : len(sequence) - tail]
    if not old:
        return f"{_shorten(new)} inserted after {head}"
    where = f"{head + 1}-{head + len(old)}" if len(old) > 1 else f"{head + 1}"
    return f"{where}: {_shorten(old)} to {_shorten(new)}" if new else f"{where}: {_shorten(old)} deleted"


def _measure_distance(base: str, sequence: str) -> int:
    """How many residues differ; for another length, how long the differing part is."""
    if len(base) == len(sequence):
        return sum(map(str.__ne__, base, sequence))
    head, tail = _count_shared(base, sequence)
    return max(len(base), len(sequence)) - head - tail


def _count_shared(base: str, sequence: str) -> tuple[int, int]:
    """How many residues both begin and end with."""
    shorter = min(len(base), len(sequence))
    head = next((offset for offset in range(shorter) if base[offset] != sequence[offset]), shorter)
    tail = next(
        (offset for offset in range(shorter - head) if base[-1 - offset] != sequence[-1 - offset]),
        shorter - head,
    )
    return head, tail


def _shorten(residues: str) -> str:
    return residues if len(residues) <= _LISTED else f"{len(residues)} residues"
