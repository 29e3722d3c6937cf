"""The identity of an order: its key, and the comparison of an experiment with a specification. Pure."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from prefect_assay.models.experiment import Experiment
from prefect_assay.models.spec import ExperimentSpec
from prefect_assay.models.spec_rules import quoted
from prefect_assay.models.vocabulary import (
    ANTIGEN_CONCENTRATIONS_NM,
    REPLICATES_DEFAULT,
    ExperimentType,
    snake_case,
)

KEY_LENGTH: Final = 20  # hex digits: 80 bits
_WORD_PREFIX: Final = "pa-"
_LABEL_LENGTH: Final = 60
_FORGED: Final = re.compile(rf"(pa)-(?=[0-9a-f]{{{KEY_LENGTH}}})", re.IGNORECASE | re.ASCII)
_FIELDS: Final = ("experiment_type", "method", "target_id", "n_replicates", "antigen_concentrations")
_LISTED: Final = 3


def order_key(campaign_id: str, batch_index: int, spec: ExperimentSpec) -> str:
    """Digest of campaign id, batch index and normalised specification; 20 hex digits.

    Neither the order of sequences nor an explicit default makes a difference, as to the service.
    """
    material = json.dumps(
        [campaign_id, batch_index, normalised(spec)],
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=True,
    )
    return hashlib.sha256(material.encode()).hexdigest()[:KEY_LENGTH]


def normalised(spec: ExperimentSpec) -> dict[str, Any]:
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
    if spec.experiment_type != ExperimentType.EPITOPE_BINNING:  # contract 2.2: binning takes no replicates
        wire.setdefault("n_replicates", REPLICATES_DEFAULT)
    if spec.experiment_type == ExperimentType.AFFINITY:
        wire.setdefault("antigen_concentrations", list(ANTIGEN_CONCENTRATIONS_NM))
    return wire


def search_token(key: str) -> str:
    """The word in the experiment's name that `search` finds (contract 4.1)."""
    return f"{_WORD_PREFIX}{key}"


def experiment_name(label: str, batch_index: int, batch_count: int, key: str) -> str:
    """A name for people and for the search: `<label> 1/4 pa-<key>`."""
    # A search token in the label loses its dash, or a search for that other key would find this experiment.
    readable = re.sub(r"\s+", " ", label).strip()[:_LABEL_LENGTH] or "campaign"
    readable = _FORGED.sub(r"\1_", readable)
    return f"{readable} {batch_index + 1}/{batch_count} {search_token(key)}"


def differences(spec: ExperimentSpec, found: Experiment) -> tuple[str, ...]:
    """The differences of the service's detail record from the specification, one line per field.

    Only the fields of the specification's type are compared; case, order and defaults make no difference.
    """
    ours = normalised(spec)
    try:
        recorded = _specification(found, ours)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = quoted(".".join(map(str, first["loc"])))
        return (
            f"experiment {found.code} cannot be compared: its record has no valid {place} ({first['msg']})",
        )
    # Defaults depend on the type, which is a difference of its own.
    theirs = normalised(recorded.model_copy(update={"experiment_type": spec.experiment_type}))
    theirs["experiment_type"] = str(recorded.experiment_type)
    pairs = [(field, _value(theirs.get(field)), _value(ours[field])) for field in _FIELDS if field in ours]
    lines = [f"{field}: {one}, not {other}" for field, one, other in pairs if one != other]
    in_record, in_spec = _sequences(theirs), _sequences(ours)
    if odd := sorted({name for name, *_ in (in_record - in_spec) + (in_spec - in_record)}):
        names = ", ".join(map(quoted, odd[:_LISTED]))
        more = f" and {len(odd) - _LISTED} more" if len(odd) > _LISTED else ""
        count = f"the experiment has {in_record.total()}, the specification {in_spec.total()}"
        lines.append(f"sequences: {count}; they differ in {names}{more}")
    return tuple(lines)


def _specification(found: Experiment, ours: Mapping[str, Any]) -> ExperimentSpec:
    record = found.experiment_spec or {}
    target, sequences = record.get("target"), record.get("sequences") or None
    if isinstance(target, dict):
        # The catalog id of a resolved target is optional (service-shapes); without it, it cannot be compared.
        record = record | {"target_id": target.get("target_catalog_id") or ours.get("target_id")}
    if isinstance(sequences, dict):
        sequences = {name: _sequence(value) for name, value in sequences.items()}
    fields = {field: record.get(field) for field in _FIELDS if field in ours}
    fields["experiment_type"] = snake_case(fields["experiment_type"] or found.experiment_type)
    if "method" in fields:
        fields["method"] = snake_case(fields["method"])
    return ExperimentSpec.model_validate(fields | {"sequences": sequences})


def _sequence(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {"aa_string": value.get("aa_string"), "control": value.get("control") or False}


def _value(value: Any) -> str:
    return "none" if value is None else repr(sorted(value) if isinstance(value, list) else value)


def _sequences(wire: Mapping[str, Any]) -> Counter[tuple[str, str, bool]]:
    return Counter((name.casefold(), s["aa_string"], s["control"]) for name, s in wire["sequences"].items())
