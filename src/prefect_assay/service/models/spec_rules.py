"""The service's rules for a specification (contract 2.2, 2.3 and 8), with every finding at once.

In a campaign, the service could refuse an order after others were placed. So `designs` checks a user's input with this
module, and the client its requests.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from prefect_assay.service.assays import ASSAY_TYPES, LIMITED_FIELDS
from prefect_assay.service.models.identifiers import is_uuid
from prefect_assay.service.models.spec import ExperimentSpec
from prefect_assay.service.models.vocabulary import (
    AMINO_ACIDS,
    CHAIN_SEPARATOR,
    REPLICATES_MAX,
    REPLICATES_MIN,
)

# service-shapes, Sequences: `metadata.type`, compared in lower case
_FAB: Final = "fab"
QUOTED_MAX: Final = 80


class NamedResidues(Protocol):
    """What every form of a sequence has: a value in a specification, and an entry that is added to a draft."""

    @property
    def aa_string(self) -> str:
        """Amino acids, with a colon between chains."""
        ...

    @property
    def metadata(self) -> Any:
        """Free-form JSON."""


def check_spec(spec: ExperimentSpec) -> tuple[str, ...]:
    """Every violation in a specification, each naming its field. Only the service knows whether the target exists."""
    return (
        *_method(spec),
        *_target(spec),
        *_fields(spec),
        *_json("parameters", spec.parameters),
        *_count(spec),
        *check_sequences(list(spec.sequences.items())),
    )


def check_sequences(entries: Sequence[tuple[str, NamedResidues]]) -> tuple[str, ...]:
    """Every violation in named sequences (contract 2.3 and 2.4); a list form may repeat a name.

    Metadata is free (contract 2.4): the contract names two of its keys and limits the values of neither.
    """
    return (*_sequences(entries), *_names(entries), *_duplicates(entries))


def _method(spec: ExperimentSpec) -> Iterator[str]:
    methods = ASSAY_TYPES[spec.experiment_type].methods
    if methods:
        if spec.method not in methods:
            yield f"method: {spec.experiment_type} needs one, {' or '.join(methods)}"
    elif spec.method is not None:
        yield f"method: {spec.experiment_type} takes none; leave it out"


def _target(spec: ExperimentSpec) -> Iterator[str]:
    if not ASSAY_TYPES[spec.experiment_type].takes_target:
        if spec.target_id is not None:
            yield f"target_id: {spec.experiment_type} takes no target; leave it out"
        return
    if not spec.target_id:
        yield f"target_id: {spec.experiment_type} needs a catalog target"
    elif not is_uuid(spec.target_id):
        yield f"target_id: {quoted(spec.target_id)} is not a uuid of a catalog target"


def _fields(spec: ExperimentSpec) -> Iterator[str]:
    """The optional fields, in the order of the limited ones: does the type take them, and are they within their limits?"""
    kind = ASSAY_TYPES[spec.experiment_type]
    for name in dict.fromkeys((*LIMITED_FIELDS, *_LIMITS)):
        value = getattr(spec, name)
        if value is None:
            continue
        if name in LIMITED_FIELDS and name not in kind.takes:
            yield f"{name}: {spec.experiment_type} takes none; leave it out"
        elif name in _LIMITS:
            yield from _LIMITS[name](value)


def check_replicates(count: int) -> Iterator[str]:
    """The limits of replicates of every assay."""
    if not REPLICATES_MIN <= count <= REPLICATES_MAX:
        yield f"n_replicates: {count}; {REPLICATES_MIN} to {REPLICATES_MAX} are possible"


def check_concentrations(values: Sequence[float]) -> Iterator[str]:
    """The limits of concentrations of every assay."""
    if not values:
        yield "antigen_concentrations: empty; name at least one in nM, or leave the field out"
    wrong = [value for value in values if not math.isfinite(value) or value < 0]
    if wrong:
        yield f"antigen_concentrations: {', '.join(map(str, wrong))}; only finite numbers from 0 on, in nM"


_LIMITS: Final[Mapping[str, Callable[[Any], Iterator[str]]]] = {
    "n_replicates": check_replicates,
    "antigen_concentrations": check_concentrations,
}
"""What limits the values of a field, beyond its type."""


def _json(place: str, value: object) -> Iterator[str]:
    """Free-form, but JSON: a NaN would silently travel as null."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        yield f"{place}: not JSON ({error})"


def _count(spec: ExperimentSpec) -> Iterator[str]:
    count, counts = len(spec.sequences), ASSAY_TYPES[spec.experiment_type].sequence_counts
    if count == 0:
        yield "sequences: none; an experiment needs at least one"
    elif counts and not counts.allow(count):
        yield (
            f"sequences: {count}; {spec.experiment_type} takes {counts.least} to {counts.most} "
            f"in multiples of {counts.step}"
        )


def _sequences(entries: Sequence[tuple[str, NamedResidues]]) -> Iterator[str]:
    for name, value in entries:
        place = f"sequences[{quoted(name)}]"
        if not name.strip():
            yield f"{place}: a sequence without a name"
        yield from _letters(place, value.aa_string)
        yield from _json(f"{place}.metadata", value.metadata)


def _names(entries: Sequence[tuple[str, NamedResidues]]) -> Iterator[str]:
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
        yield f"{place}: not an amino acid: {', '.join(map(ascii, foreign))}"


def _duplicates(entries: Sequence[tuple[str, NamedResidues]]) -> Iterator[str]:
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


def _identity(value: NamedResidues) -> tuple[str, str] | None:
    """What two sequences must not share; None for a Fab, which its type shows, or without a type its several chains."""
    metadata = value.metadata if isinstance(value.metadata, dict) else {}
    kind = str(metadata.get("type") or "").lower()
    is_fab = kind == _FAB or (not kind and CHAIN_SEPARATOR in value.aa_string)
    if is_fab or not value.aa_string:
        return None
    return value.aa_string.upper(), str(metadata.get("tag_location") or "").upper()


def quoted(value: str) -> str:
    """A foreign value for a message: in quotes, control characters escaped, at most 80 characters."""
    return repr(value if len(value) <= QUOTED_MAX else value[: QUOTED_MAX - 3] + "...")
