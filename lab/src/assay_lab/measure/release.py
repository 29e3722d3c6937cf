"""What a release of results is: the record with its entries, and the data package."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from assay_lab.measure.assays import ASSAY_TYPES
from assay_lab.measure.files import File, pack_files
from assay_lab.measure.request import AssayRequest


def measure_records(**fields: Any) -> list[dict[str, Any]]:
    """One result record without id, experiment_id and created_at, with a summary entry per design in the given order.

    The fields are those of `AssayRequest`. K_D in M, k_on in 1/(M s), k_off in 1/s, Tm in degrees Celsius.
    """
    request = _read_request(fields)
    kind = ASSAY_TYPES[request.experiment_type]
    entries = kind.list_entries(request)
    return [
        {
            "result_type": request.experiment_type,
            "title": _make_title(kind.title, request),
            "summary": entries,
            "metadata": _make_metadata(request, entries),
        }
    ]


def build_package(**fields: Any) -> bytes:
    """The zip data package of the same fields, which give the same bytes at any later time."""
    request = _read_request(fields)
    return pack_files(_list_files(request))


def _read_request(fields: Mapping[str, Any]) -> AssayRequest:
    default = ASSAY_TYPES[fields["experiment_type"]].concentrations_nm
    return AssayRequest(**fields, default_concentrations=default)


def _list_files(request: AssayRequest) -> Iterator[File]:
    yield from ASSAY_TYPES[request.experiment_type].make_files(request)
    if request.landscape:
        shown = {name: value for name, value in request.landscape.items() if name != "facts"}
        yield "aux/landscape.json", json.dumps(shown, indent=1, ensure_ascii=False) + "\n"


def _make_title(title: str, request: AssayRequest) -> str:
    against = f" against {request.target.get('name')}" if request.target else ""
    return f"{title}{against}{' (preliminary)' if request.partial else ''}"


def _make_metadata(request: AssayRequest, entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Which designs were measured and which come from the model, among others."""
    named = [(design.name, entry) for design, entry in zip(request.designs, entries, strict=True)]
    metadata: dict[str, Any] = {
        "preliminary": request.partial,
        "method": request.method,
        "n_replicates": request.n_replicates
        if "n_replicates" in ASSAY_TYPES[request.experiment_type].takes
        else None,
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
