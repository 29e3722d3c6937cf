"""The table of assays: the records and files that each makes."""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from assay_lab.measure.binding import affinity_entries, screening_entries
from assay_lab.measure.files import File, pack
from assay_lab.measure.readouts import (
    activity_entries,
    activity_files,
    binning_entries,
    binning_files,
    expression_entries,
    expression_files,
    fluorescence_entries,
    fluorescence_files,
)
from assay_lab.measure.request import AssayRequest
from assay_lab.measure.sensorgrams import binding_files
from assay_lab.measure.stability import stability_entries, stability_files
from assay_lab.vocabulary import ExperimentType

_Entries = Callable[[AssayRequest], list[dict[str, Any]]]
_Files = Callable[[AssayRequest], Iterator[File]]

_ASSAYS: Final[dict[str, tuple[str, _Entries, _Files]]] = {
    ExperimentType.AFFINITY: ("Binding affinity", affinity_entries, binding_files),
    ExperimentType.SCREENING: ("Binding screen", screening_entries, binding_files),
    ExperimentType.EPITOPE_BINNING: ("Epitope binning", binning_entries, binning_files),
    ExperimentType.THERMOSTABILITY: ("Thermal stability", stability_entries, stability_files),
    ExperimentType.FLUORESCENCE: ("Fluorescence", fluorescence_entries, fluorescence_files),
    ExperimentType.EXPRESSION: ("Expression yield", expression_entries, expression_files),
    ExperimentType.ENZYME_ACTIVITY: ("Enzyme activity", activity_entries, activity_files),
}


def measure_records(**fields: Any) -> list[dict[str, Any]]:
    """One result record without id, experiment_id and created_at, with a summary entry per design in the given order.

    The fields are those of `AssayRequest`. K_D in M, k_on in 1/(M s), k_off in 1/s, Tm in degrees Celsius.
    """
    request = AssayRequest(**fields)
    title, entries_of, _ = _ASSAYS[request.experiment_type]
    entries = entries_of(request)
    return [
        {
            "result_type": request.experiment_type,
            "title": _title(title, request),
            "summary": entries,
            "metadata": _metadata(request, entries),
        }
    ]


def build_package(**fields: Any) -> bytes:
    """The zip data package of the same fields, which give the same bytes at any later time."""
    request = AssayRequest(**fields)
    return pack(_files(request))


def _files(request: AssayRequest) -> Iterator[File]:
    yield from _ASSAYS[request.experiment_type][2](request)
    if request.landscape:
        shown = {name: value for name, value in request.landscape.items() if name != "facts"}
        yield "aux/landscape.json", json.dumps(shown, indent=1, ensure_ascii=False) + "\n"


def _title(title: str, request: AssayRequest) -> str:
    against = f" against {request.target.get('name')}" if request.target else ""
    return f"{title}{against}{' (preliminary)' if request.partial else ''}"


def _metadata(request: AssayRequest, entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Which designs were measured and which come from the model, among others."""
    named = [(design.name, entry) for design, entry in zip(request.designs, entries, strict=True)]
    metadata: dict[str, Any] = {
        "preliminary": request.partial,
        "method": request.method,
        # contract 2.2: rejected for epitope binning, so nothing was repeated there
        "n_replicates": None if request.experiment_type == "epitope_binning" else request.n_replicates,
        "measured_sequences": [name for name, entry in named if entry.get("data_source") == "measured"],
        "modelled_sequences": [name for name, entry in named if entry.get("data_source") == "model"],
        "modelled_replicates": {name: added for name, entry in named if (added := _added_replicates(entry))},
        "model": "lab/docs/lab-measurements.md",
    }
    if request.landscape:
        absent = set(request.landscape["not_in_table"])
        metadata["landscape"] = {
            name: request.landscape[name] for name in ("name", "missing", "kd_noise", "tm_noise", "seed")
        }
        metadata["landscape_sequences"] = [d.name for d in request.designs if d.residues not in absent]
        metadata["not_in_landscape"] = [d.name for d in request.designs if d.residues in absent]
        if request.landscape["attribution"]:
            metadata["attribution"] = request.landscape["attribution"]
    if any(str(entry.get("data_source")).startswith("measured") for entry in entries):
        metadata["attribution"] = (
            "measured values: github.com/agitter/adaptyvbio-egfr, MIT licence, (c) 2024 Anthony Gitter"
        )
    return metadata


def _added_replicates(entry: dict[str, Any]) -> list[int]:
    if entry.get("data_source") != "measured+model":
        return []
    return [row["replicate"] for row in entry["replicates"] if row["data_source"] == "model"]
