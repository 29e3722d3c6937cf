"""The service's rules for a specification (contract 2.2, 2.3 and 8), with every finding at once.

In a campaign, the service could refuse an order after others were placed. So `designs` checks a user's input with this
module, and the client its requests.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from prefect_assay.models.spec import ExperimentSpec, SequenceValue
from prefect_assay.models.vocabulary import (
    AMINO_ACIDS,
    BINDING_TYPES,
    BINNING_SEQUENCES_MAX,
    BINNING_SEQUENCES_MIN,
    BINNING_SEQUENCES_STEP,
    CHAIN_SEPARATOR,
    METHOD_TYPES,
    REPLICATES_MAX,
    REPLICATES_MIN,
    ExperimentType,
)

# service-shapes, Sequences: the published names and their aliases, compared in lower case.
_FAB: Final = frozenset({"fab"})
_SCFV: Final = frozenset({"scfv", "sc_fv"})
_KINDS: Final = _FAB | _SCFV | {"singlechain", "single_chain", "igg"}
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_TAGS: Final = ("N", "C")  # a tuple: foreign values may be unhashable
QUOTED_MAX: Final = 80


def check_spec(spec: ExperimentSpec) -> tuple[str, ...]:
    """Every violation in a specification, each naming its field. Only the service knows whether the target exists."""
    return (
        *_method(spec),
        *_target(spec),
        *_replicates(spec),
        *_concentrations(spec),
        *_json("parameters", spec.parameters),
        *_count(spec),
        *check_sequences(list(spec.sequences.items())),
    )


def check_sequences(
    entries: Sequence[tuple[str, SequenceValue]], *, free_metadata: bool = False
) -> tuple[str, ...]:
    """Every violation in named sequences (contract 2.3 and 2.4); a list form may repeat a name.

    Metadata has rules at the creation of an experiment (service-shapes, Sequences); `free_metadata` is for the sequences that
    are added or replaced later (contract 2.4).
    """
    return (*_sequences(entries, free_metadata=free_metadata), *_names(entries), *_duplicates(entries))


def _method(spec: ExperimentSpec) -> Iterator[str]:
    if spec.experiment_type in METHOD_TYPES:
        if spec.method is None:
            yield f"method: {spec.experiment_type} needs one, bli or spr"
    elif spec.method is not None:
        yield f"method: {spec.experiment_type} takes none; leave it out"


def _target(spec: ExperimentSpec) -> Iterator[str]:
    if spec.experiment_type not in BINDING_TYPES:
        if spec.target_id is not None:
            yield f"target_id: {spec.experiment_type} takes no target; leave it out"
        return
    if not spec.target_id:
        yield f"target_id: {spec.experiment_type} needs a catalog target"
    elif not is_uuid(spec.target_id):
        yield f"target_id: {quoted(spec.target_id)} is no uuid of a catalog target"


def _replicates(spec: ExperimentSpec) -> Iterator[str]:
    if spec.n_replicates is None:
        return
    if spec.experiment_type is ExperimentType.EPITOPE_BINNING:
        yield "n_replicates: epitope_binning takes none; leave it out"
    else:
        yield from check_replicates(spec.n_replicates)


def check_replicates(count: int) -> Iterator[str]:
    """The limits of replicates of every assay."""
    if not REPLICATES_MIN <= count <= REPLICATES_MAX:
        yield f"n_replicates: {count}; {REPLICATES_MIN} to {REPLICATES_MAX} are possible"


def _concentrations(spec: ExperimentSpec) -> Iterator[str]:
    values = spec.antigen_concentrations
    if values is None:
        return
    if spec.experiment_type is not ExperimentType.AFFINITY:
        yield f"antigen_concentrations: {spec.experiment_type} takes none; leave them out"
        return
    if not values:
        yield "antigen_concentrations: empty; name at least one in nM, or leave the field out"
    yield from check_concentrations(values)


def check_concentrations(values: Sequence[float]) -> Iterator[str]:
    """The limits of concentrations of every assay."""
    wrong = [value for value in values if not math.isfinite(value) or value < 0]
    if wrong:
        yield f"antigen_concentrations: {', '.join(map(str, wrong))}; only finite numbers from 0 on, in nM"


def _json(place: str, value: dict[str, Any] | None) -> Iterator[str]:
    """Free-form, but JSON: a NaN would silently travel as null."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        yield f"{place}: not JSON ({error})"


def _count(spec: ExperimentSpec) -> Iterator[str]:
    count = len(spec.sequences)
    if count == 0:
        yield "sequences: none; an experiment needs at least one"
    elif spec.experiment_type is ExperimentType.EPITOPE_BINNING and not _fits_binning(count):
        yield (
            f"sequences: {count}; epitope_binning takes {BINNING_SEQUENCES_MIN} to {BINNING_SEQUENCES_MAX} "
            f"in multiples of {BINNING_SEQUENCES_STEP}"
        )


def _fits_binning(count: int) -> bool:
    return BINNING_SEQUENCES_MIN <= count <= BINNING_SEQUENCES_MAX and count % BINNING_SEQUENCES_STEP == 0


def _sequences(entries: Sequence[tuple[str, SequenceValue]], *, free_metadata: bool) -> Iterator[str]:
    for name, value in entries:
        place = f"sequences[{quoted(name)}]"
        if not name.strip():
            yield f"{place}: a sequence without a name"
        yield from _letters(place, value.aa_string)
        if not free_metadata:
            yield from _metadata(f"{place}.metadata", value.metadata or {})
        yield from _json(f"{place}.metadata", value.metadata)


def _names(entries: Sequence[tuple[str, SequenceValue]]) -> Iterator[str]:
    """A list form may repeat a name; its results would be ambiguous."""
    counts = Counter(name for name, _ in entries)
    yield from (
        f"sequences[{quoted(name)}]: {count} sequences have this name; give each a name of its own"
        for name, count in counts.items()
        if count > 1
    )


def _letters(place: str, residues: str) -> Iterator[str]:
    if not residues.strip(CHAIN_SEPARATOR):
        yield f"{place}: no residues"
        return
    chains = residues.split(CHAIN_SEPARATOR)
    if not all(chains):
        yield f"{place}: an empty chain; {CHAIN_SEPARATOR!r} belongs only between chains"
    # Letters outside ASCII must not become amino acids by being upper-cased.
    foreign = sorted(
        {letter for letter in "".join(chains) if not letter.isascii() or letter.upper() not in AMINO_ACIDS}
    )
    if foreign:
        yield f"{place}: no amino acid: {', '.join(map(ascii, foreign))}"


def _metadata(place: str, metadata: dict[str, Any]) -> Iterator[str]:
    """Required metadata of each kind of construct (service-shapes, Sequences)."""
    kind = metadata.get("type")
    if kind is not None and _kind(metadata) not in _KINDS:
        yield f"{place}.type: {quoted(str(kind))}; ScFv, FAB, SingleChain or IgG are possible"
    tag = metadata.get("tag_location")
    if tag is not None and tag not in _TAGS:
        yield f"{place}.tag_location: {quoted(str(tag))}; N or C are possible"
    if _kind(metadata) in _SCFV:
        yield from (f"{place}.{key}: an ScFv needs it" for key in ("VH", "VL") if not metadata.get(key))
    if _kind(metadata) in _FAB:
        regions = metadata.get("framework_regions")
        given = regions if isinstance(regions, dict) else {}
        yield from (
            f"{place}.framework_regions.{key}: a FAB needs it" for key in ("ch", "cl") if not given.get(key)
        )


def _kind(metadata: dict[str, Any]) -> str:
    return str(metadata.get("type") or "").lower()


def _duplicates(entries: Sequence[tuple[str, SequenceValue]]) -> Iterator[str]:
    """Contract 2.3: the same residues and tag location are refused, Fabs exempt."""
    first: dict[tuple[str, str], str] = {}
    for name, value in entries:
        key = _identity(value)
        if key is None:
            continue
        known = first.setdefault(key, name)
        if known != name:
            yield (
                f"sequences[{quoted(name)}]: same residues and tag location as {quoted(known)}; leave one of them out"
            )


def _identity(value: SequenceValue) -> tuple[str, str] | None:
    metadata = value.metadata or {}
    if _kind(metadata) in _FAB or not value.aa_string:
        return None
    return value.aa_string.upper(), str(metadata.get("tag_location") or "")


def is_uuid(text: str) -> bool:
    """Return True if a text has the form of a catalog id."""
    return _UUID.fullmatch(text) is not None


def quoted(value: str) -> str:
    """A foreign value for a message: in quotes, control characters escaped, at most 80 characters."""
    return repr(value if len(value) <= QUOTED_MAX else value[: QUOTED_MAX - 3] + "...")
