"""Compare an experiment of the service with the specification it is taken for. Pure."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from prefect_assay.models.experiment import Experiment
from prefect_assay.models.shown import shown
from prefect_assay.models.spec import ExperimentSpec
from prefect_assay.models.vocabulary import snake_case
from prefect_assay.ordering.key import normalised

_FIELDS: Final = ("experiment_type", "method", "target_id", "n_replicates", "antigen_concentrations")
_LISTED: Final = 3


def differences(spec: ExperimentSpec, found: Experiment) -> tuple[str, ...]:
    """What the service's detail record and the specification disagree on, one line per field.

    Only what the specification's type takes is compared. Letter case, the order of sequences and concentrations, and
    a default that only one side spells out make no difference. A record that cannot be read as a specification gives
    one line that says so.
    """
    ours = normalised(spec)
    try:
        recorded = _specification(found, ours)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = shown(".".join(map(str, first["loc"])))
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
        names = ", ".join(map(shown, odd[:_LISTED]))
        more = f" and {len(odd) - _LISTED} more" if len(odd) > _LISTED else ""
        count = f"the experiment has {in_record.total()}, the specification {in_spec.total()}"
        lines.append(f"sequences: {count}; they differ in {names}{more}")
    return tuple(lines)


def _specification(found: Experiment, ours: Mapping[str, Any]) -> ExperimentSpec:
    """The fields of the record that are compared."""
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
