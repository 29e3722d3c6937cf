"""The identity of an order: its key, and the comparison of an experiment with a specification. Pure."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any, Final

from prefect_assay.service.assays import ASSAY_TYPES
from prefect_assay.service.models.experiment import Experiment, ExperimentSummary
from prefect_assay.service.models.identifiers import is_uuid
from prefect_assay.service.models.spec import ExperimentSpec
from prefect_assay.service.models.spec_rules import quoted
from prefect_assay.service.models.vocabulary import (
    ExperimentType,
    Method,
    snake_case,
)
from prefect_assay.service.words import listed

KEY_LENGTH: Final = 20  # hex digits: 80 bits
_WORD_PREFIX: Final = "pa-"
_LABEL_LENGTH: Final = 60
_FORGED: Final = re.compile(rf"(pa)-(?=[0-9a-f]{{{KEY_LENGTH}}})", re.IGNORECASE | re.ASCII)
_TOKEN: Final = re.compile(rf"(?<!\S){_WORD_PREFIX}[0-9a-f]{{{KEY_LENGTH}}}(?!\S)", re.ASCII)
_LISTED: Final = 3


def order_key(campaign_id: str, batch_index: int, spec: ExperimentSpec) -> str:
    """Digest of campaign id, batch index and normalised specification; 20 hex digits.

    Neither the order of sequences nor an explicit default makes a difference, as to the service.
    """
    material = json.dumps(
        [campaign_id, batch_index, normalize_spec(spec)],
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=True,
    )
    return hashlib.sha256(material.encode()).hexdigest()[:KEY_LENGTH]


def normalize_spec(spec: ExperimentSpec) -> dict[str, Any]:
    """The JSON body with defaults and one case. It must not change: keys of existing orders depend on it."""
    wire = spec.wire()
    if not wire.get("parameters"):
        wire.pop("parameters", None)
    if spec.target_id is not None:
        wire["target_id"] = spec.target_id.lower()
    for sequence in wire["sequences"].values():
        if sequence["aa_string"].isascii():  # upper() turns some other letters into amino acids
            sequence["aa_string"] = sequence["aa_string"].upper()
        if not sequence.get("metadata"):
            sequence.pop("metadata", None)
    ASSAY_TYPES[spec.experiment_type].fill_defaults(wire)
    return wire


def search_token(key: str) -> str:
    """The word in the experiment's name that `search` finds (contract 4.1)."""
    return f"{_WORD_PREFIX}{key}"


def carries_key(name: str | None, key: str) -> bool:
    """Return True if a name has the order key as a word of its own."""
    return search_token(key) in (name or "").casefold().split()


def find_contradictions(spec: ExperimentSpec, key: str, experiment: ExperimentSummary) -> tuple[str, ...]:
    """Why a record cannot be that of the order: another order's key in its name, or a field that differs; empty otherwise.

    A name without any key contradicts nothing, because people rename experiments in the portal.
    """
    is_other = not carries_key(experiment.name, key) and _TOKEN.search((experiment.name or "").casefold())
    named = ("name: it has the key of another order",) if is_other else ()
    return (*named, *evidence(spec, experiment).differs)


def experiment_name(label: str, batch_index: int, batch_count: int, key: str) -> str:
    """A name for people and for the search: `<label> 1/4 pa-<key>`."""
    # A search token in the label loses its dash, or a search for that other key would find this experiment.
    readable = re.sub(r"\s+", " ", label).strip()[:_LABEL_LENGTH] or "campaign"
    readable = _FORGED.sub(r"\1_", readable)
    return f"{readable} {batch_index + 1}/{batch_count} {search_token(key)}"


class Reading(Enum):
    """What a record says about a field, where it is not a value."""

    ABSENT = "absent"
    UNREAD = "unread"


@dataclass(frozen=True)
class Evidence:
    """An experiment's record compared with a specification.

    Attributes:
        equal: the fields that can be read and agree.
        differs: a line per field that can be read and differs.
        unread: the fields that are there and cannot be read; what is absent contradicts nothing.
    """

    equal: frozenset[str]
    differs: tuple[str, ...]
    unread: tuple[str, ...]

    def proves_identity(self, spec: ExperimentSpec) -> bool:
        """Whether type, target and sequences can be read and agree, and nothing differs."""
        needed = {"experiment_type", "sequences"} | ({"target_id"} if spec.target_id else set())
        return not self.differs and needed <= self.equal


def evidence(spec: ExperimentSpec, experiment: ExperimentSummary) -> Evidence:
    """Compare what the service's record shows of an experiment with a specification.

    The contract does not show the record (2.1): each field is read wherever it may be, in any of its published forms.
    Only the fields of the specification's type are compared; case, order and defaults make no difference.
    """
    ours = normalize_spec(spec)
    record, unread = _split_readable_parts(experiment)
    equal, differs = set(), []
    # The service may add parameters of its own.
    single = [name for name in ours if name not in {"sequences", "parameters"}]
    for field in (*single, "sequences"):
        match _READERS[field](record) if field in _READERS else _read_first_value(record, field):
            case Reading.ABSENT:
                pass
            case Reading.UNREAD:
                unread.append(field)
            case theirs:
                line = _describe_difference(field, theirs, ours[field])
                if line is None:
                    equal.add(field)
                else:
                    differs.append(line)
    return Evidence(frozenset(equal), tuple(differs), tuple(unread))


def _split_readable_parts(experiment: ExperimentSummary) -> tuple[dict[str, Any], list[str]]:
    """The record's fields, those of its specification first, and the parts that cannot be read."""
    top = experiment.model_dump(mode="json", exclude={"experiment_spec"}, exclude_none=True)
    inner = experiment.experiment_spec if isinstance(experiment, Experiment) else None
    if isinstance(inner, dict):
        return {**top, **{name: value for name, value in inner.items() if value is not None}}, []
    return top, [] if inner is None else ["experiment_spec"]


def _read_first_value(record: Mapping[str, Any], *names: str) -> Any:
    return next((record[name] for name in names if record.get(name) is not None), Reading.ABSENT)


def _word_of(words: type[StrEnum], *names: str) -> Callable[[Mapping[str, Any]], Any]:
    def read(record: Mapping[str, Any]) -> Any:
        value = _read_first_value(record, *names)
        if value is Reading.ABSENT:
            return value
        word = snake_case(value)
        return word if word in set(words) else Reading.UNREAD

    return read


def _read_target(record: Mapping[str, Any]) -> Any:
    value = _read_first_value(record, "target_id", "target")
    if isinstance(value, dict):
        # The catalog id of a resolved target is optional (service-shapes).
        value = _read_first_value(value, "target_catalog_id", "target_id", "catalog_id", "id")
    if value is Reading.ABSENT:
        return value
    return value.strip().lower() if isinstance(value, str) and is_uuid(value.strip()) else Reading.UNREAD


def _read_replicates(record: Mapping[str, Any]) -> Any:
    value = _read_first_value(record, "n_replicates")
    return value if value is Reading.ABSENT or type(value) is int else Reading.UNREAD


def _read_concentrations(record: Mapping[str, Any]) -> Any:
    value = _read_first_value(record, "antigen_concentrations")
    if value is Reading.ABSENT:
        return value
    numbers = isinstance(value, list) and all(type(one) in {int, float} for one in value)
    return [float(one) for one in value] if numbers else Reading.UNREAD


def _read_sequences(record: Mapping[str, Any]) -> Any:
    """The sequences as name (None where no name is shown), residues and control; a preview of residues does not count."""
    value = _read_first_value(record, "sequences")
    if value is Reading.ABSENT:
        return value
    if isinstance(value, dict):
        pairs = [(name, one) for name, one in value.items()]
    elif isinstance(value, list):
        pairs = [(None, one) for one in value]
    else:
        return Reading.UNREAD
    read = [_read_sequence(name, one) for name, one in pairs]
    return [one for one in read if one] if read and all(read) else Reading.UNREAD


def _read_sequence(name: str | None, value: Any) -> tuple[str | None, str, bool] | None:
    entry = {"aa_string": value} if isinstance(value, str) and name is not None else value
    if not isinstance(entry, dict):
        return None
    residues = _read_first_value(entry, "aa_string", "sequence", "residues")
    name = name if name is not None else _read_first_value(entry, "name", "sequence_name")
    if not isinstance(residues, str) or not residues.strip():
        return None
    control = _read_first_value(entry, "control", "is_control")
    if control is not Reading.ABSENT and not isinstance(control, bool):
        return None
    return name if isinstance(name, str) else None, residues.strip().upper(), control is True


_READERS: Final[dict[str, Callable[[Mapping[str, Any]], Any]]] = {
    "experiment_type": _word_of(ExperimentType, "experiment_type", "type"),
    "method": _word_of(Method, "method"),
    "target_id": _read_target,
    "n_replicates": _read_replicates,
    "antigen_concentrations": _read_concentrations,
    "sequences": _read_sequences,
}


def _describe_difference(field: str, theirs: Any, ours: Any) -> str | None:
    if field == "sequences":
        return _sequences_differ(theirs, ours)
    one, other = _format_value(theirs), _format_value(ours)
    return None if one == other else f"{field}: {one}, not {other}"


def _sequences_differ(
    theirs: list[tuple[str | None, str, bool]], ours: Mapping[str, Mapping[str, Any]]
) -> str | None:
    named = all(name is not None for name, *_ in theirs)
    in_record: Counter[tuple[Any, ...]] = Counter(
        (name.casefold(), residues, control) if named and name is not None else (residues,)
        for name, residues, control in theirs
    )
    in_spec: Counter[tuple[Any, ...]] = Counter(
        (name.casefold(), s["aa_string"], s["control"]) if named else (s["aa_string"],)
        for name, s in ours.items()
    )
    if in_record == in_spec:
        return None
    names = sorted({key[0] for key in (in_record - in_spec) + (in_spec - in_record)}) if named else []
    count = f"the experiment has {in_record.total()}, the specification {in_spec.total()}"
    where = f" in {listed([*map(quoted, names)], _LISTED)}" if names else ""
    return f"sequences: {count}; they differ{where}"


def _format_value(value: Any) -> str:
    return repr(
        sorted(map(float, value))
        if isinstance(value, list)
        else str(value)
        if isinstance(value, str)
        else value
    )
