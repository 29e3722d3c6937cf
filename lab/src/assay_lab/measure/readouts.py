"""Fluorescence, expression, enzyme activity and epitope binning, in shapes of the lab's own: no others are published.

Every binder has one of `BINS` epitopes; two of one epitope block each other. Each pair is measured once.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from assay_lab.measure.files import File, summary_file, table
from assay_lab.measure.model import (
    draw_expression,
    expression_of,
    mean,
    measured_of,
    michaelis_menten,
    nature_of,
    spread,
)
from assay_lab.measure.request import AssayRequest, Design, seeded

Row = dict[str, Any]
_RowOf = Callable[[Design, int], Row]
_SummaryOf = Callable[[Design, list[Row]], Row]

SUBSTRATE_UM: Final = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
BACKGROUND_RFU: Final = 150.0
_DARK_SHARE = 0.25
_INACTIVE_SHARE = 0.35
_YIELD_MG_PER_L = {"high": 120.0, "medium": 30.0, "low": 5.0, "none": 0.0}
_LEAST_MG_PER_L = {"high": 60.0, "medium": 12.0, "low": 0.0}  # between the classes' yields, by their ratio
_WATER_DA = 18.015
_RESIDUE_DA: Final = {
    "A": 71.08, "R": 156.19, "N": 114.10, "D": 115.09, "C": 103.14, "E": 129.12, "Q": 128.13,
    "G": 57.05, "H": 137.14, "I": 113.16, "L": 113.16, "K": 128.17, "M": 131.19, "F": 147.18,
    "P": 97.12, "S": 87.08, "T": 101.10, "W": 186.21, "Y": 163.18, "V": 99.13,
}  # fmt: skip
BINS: Final = ("A", "B", "C", "D")
BLOCKED_BELOW: Final = 0.5


def molecular_weight(residues: str) -> float:
    """Average mass in Da, summed over the chains."""
    return sum(
        sum(_RESIDUE_DA.get(letter, 110.0) for letter in chain) + _WATER_DA
        for chain in residues.split(":")
        if chain
    )


def _entries(request: AssayRequest, result_type: str, rows_of: _RowOf, summary_of: _SummaryOf) -> list[Row]:
    entries: list[Row] = []
    for index, design in enumerate(request.designs):
        head: Row = {"result_type": result_type, "sequence": design.as_sequence()}
        if index >= request.measured:
            entries.append({**head, "state": "in_progress", "replicates": []})
            continue
        source = request.source(design.residues)
        rows = [
            {"replicate": number, **rows_of(design, number), "data_source": source}
            for number in _numbers(request, design)
        ]
        summary = summary_of(design, rows) if rows else {}
        entries.append({**head, **summary, "data_source": source, "replicates": rows})
    return entries


def _numbers(request: AssayRequest, design: Design) -> range:
    """The numbers of a design's replicates; none where a landscape leaves the outcome open."""
    return range(1, 1 if request.facts(design.residues) == {} else request.n_replicates + 1)


def _summary(request: AssayRequest, columns: tuple[str, ...], rows_of: _RowOf) -> File:
    return summary_file(
        request.experiment_id,
        ("name", "replicate", *columns, "sequence"),
        (
            (design.name, number, *(row[column] for column in columns), design.residues)
            for design in request.designs[: request.measured]
            for number in _numbers(request, design)
            for row in (rows_of(design, number),)
        ),
    )


def fluorescence_entries(request: AssayRequest) -> list[Row]:
    """Intensity over background in relative units, at 488 nm excitation and 512 nm emission."""
    return _entries(request, "fluorescence", _fluorescence, _fluorescence_summary)


def fluorescence_files(request: AssayRequest) -> Iterator[File]:
    """The table of replicates."""
    yield _summary(request, ("expression", "intensity"), _fluorescence)


def _fluorescence(design: Design, number: int) -> Row:
    expression = draw_expression(design.residues)
    nature = seeded("fluorescence", design.residues)
    dark = expression == "none" or nature.random() < _DARK_SHARE
    brightness = 0.0 if dark else 10 ** nature.gauss(3.6, 0.6)
    scatter = seeded("fluorescence replicate", design.residues, number).gauss(0, 0.04)
    return {"intensity": round((BACKGROUND_RFU + brightness) * 10**scatter, 1), "expression": expression}


def _fluorescence_summary(design: Design, rows: list[Row]) -> Row:
    values = [row["intensity"] for row in rows]
    return {
        "intensity_mean": mean(values),
        "intensity_std": spread(values),
        "intensity_units": "RFU",
        "background": BACKGROUND_RFU,
        "excitation_nm": 488,
        "emission_nm": 512,
        "expression": draw_expression(design.residues),
    }


def expression_entries(request: AssayRequest) -> list[Row]:
    """Yield in mg per litre of culture, and the concentration in nM that it makes."""
    return _entries(request, "expression", partial(_yield, request), _yield_summary)


def expression_files(request: AssayRequest) -> Iterator[File]:
    """The table of replicates."""
    yield _summary(request, ("expression", "yield_mg_per_l", "purity_percent"), partial(_yield, request))


def _yield(request: AssayRequest, design: Design, number: int) -> Row:
    expression, typical = _typical_yield(request, design.residues)
    seed = (request.landscape["seed"],) if request.landscape else ()
    chance = seeded("titre replicate", *seed, design.residues, number)
    made = expression != "none"
    return {
        "expression": expression,
        "yield_mg_per_l": round(typical * 10 ** chance.gauss(0, 0.05), 2) if made else 0.0,
        "purity_percent": round(min(99.0, chance.gauss(93, 3)), 1) if made else None,
    }


def _typical_yield(request: AssayRequest, residues: str) -> tuple[str, float]:
    """The class and mg/L: the landscape's, where it has one of them the class that belongs to the yield or the reverse."""
    stated = (request.facts(residues) or {}).get("yield_mg_per_l")
    if stated is None:
        expression = expression_of(request, residues)
        return expression, _YIELD_MG_PER_L[expression] * 10 ** seeded("titre", residues).gauss(0, 0.12)
    nearest = next(name for name, least in _LEAST_MG_PER_L.items() if stated >= least) if stated else "none"
    return (request.facts(residues) or {}).get("expression", nearest), stated


def _yield_summary(design: Design, rows: list[Row]) -> Row:
    values = [row["yield_mg_per_l"] for row in rows]
    average = mean(values) or 0.0
    concentration = round(average / molecular_weight(design.residues) * 1e6, 1)
    return {
        "expression": rows[0]["expression"],
        "yield_mean": average,
        "yield_std": spread(values),
        "yield_units": "mg/L",
        "concentration_value": concentration or None,
        "concentration_display": f"{concentration:.1f}" if concentration else "<5.0",
        "molecular_weight_da": round(molecular_weight(design.residues), 1),
    }


def activity_entries(request: AssayRequest) -> list[Row]:
    """Michaelis-Menten constants: k_cat in 1/s, K_M in M."""
    return _entries(request, "enzyme_activity", _activity, _activity_summary)


def activity_files(request: AssayRequest) -> Iterator[File]:
    """The table of replicates, and initial rates (1/s per enzyme) over substrate (uM)."""
    yield _summary(request, ("expression", "active", "kcat", "km"), _activity)
    for design in request.designs[: request.measured]:
        for number in range(1, request.n_replicates + 1):
            row = _activity(design, number)
            if row["kcat"] is None:
                continue
            rates = [
                (s, round(michaelis_menten(s * 1e-6, vmax=row["kcat"], km=row["km"]), 6))
                for s in SUBSTRATE_UM
            ]
            yield f"raw_data/{design.stem}_{number}.csv", table(("substrate_um", "rate"), rates)


def _activity(design: Design, number: int) -> Row:
    expression = draw_expression(design.residues)
    if expression == "none":
        return {"expression": expression, "active": "unknown", "kcat": None, "km": None}
    nature = seeded("activity", design.residues)
    if nature.random() < _INACTIVE_SHARE:
        return {"expression": expression, "active": "false", "kcat": None, "km": None}
    kcat, km = 10 ** nature.gauss(0.5, 0.8), 10 ** nature.gauss(-4.2, 0.5)
    chance = seeded("activity replicate", design.residues, number)
    return {
        "expression": expression,
        "active": "true",
        "kcat": kcat * 10 ** chance.gauss(0, 0.04),
        "km": km * 10 ** chance.gauss(0, 0.06),
    }


def _activity_summary(design: Design, rows: list[Row]) -> Row:
    kcat = [row["kcat"] for row in rows if row["kcat"] is not None]
    km = [row["km"] for row in rows if row["km"] is not None]
    return {
        "active": rows[0]["active"],
        "kcat_mean": mean(kcat),
        "kcat_std": spread(kcat),
        "kcat_units": "1/s",
        "km_mean": mean(km),
        "km_std": spread(km),
        "km_units": "M",
        "expression": draw_expression(design.residues),
    }


def epitope(request: AssayRequest, design: Design) -> str | None:
    """The design's bin, or None when it does not bind and so cannot be binned."""
    rows = measured_of(request, design.residues)
    binds = (
        any(row.binding == "true" for row in rows)
        if rows
        else nature_of(request, design.residues).binding == "true"
    )
    return seeded("epitope", design.residues, request.target_key).choice(BINS) if binds else None


def response(request: AssayRequest, first: Design, second: Design) -> float | None:
    """Normalised binding of `second` to the antigen that `first` holds: 1 unhindered, 0 blocked."""
    bins = epitope(request, first), epitope(request, second)
    if None in bins:
        return None
    level = 0.08 if bins[0] == bins[1] else 0.95
    noise = seeded("pair", first.residues, second.residues, request.target_key).gauss(0, 0.04)
    return round(min(1.1, max(0.0, level + noise)), 3)


def binning_entries(request: AssayRequest) -> list[dict[str, Any]]:
    """One entry per design: its bin and the designs that it blocks."""
    measured = request.designs[: request.measured]
    entries: list[dict[str, Any]] = []
    for index, design in enumerate(request.designs):
        head: dict[str, Any] = {
            "result_type": "epitope_binning",
            "sequence": design.as_sequence(),
            "target": request.target_summary,
        }
        if index >= request.measured:
            entries.append({**head, "state": "in_progress", "bin": None, "responses": {}})
            continue
        responses = {other.name: response(request, design, other) for other in measured}
        entries.append(
            {
                **head,
                "bin": epitope(request, design),
                "binding": "true" if epitope(request, design) else "false",
                "blocks": [
                    name
                    for name, value in responses.items()
                    if value is not None and value < BLOCKED_BELOW and name != design.name
                ],
                "responses": responses,
                "data_source": "model",
            }
        )
    return entries


def binning_files(request: AssayRequest) -> Iterator[File]:
    """The bins, and the matrix of normalised responses (rows first, columns second)."""
    measured = request.designs[: request.measured]
    yield summary_file(
        request.experiment_id,
        ("name", "bin", "sequence"),
        ((design.name, epitope(request, design), design.residues) for design in measured),
    )
    yield (
        "raw_data/competition_matrix.csv",
        table(
            ("name", *(design.name for design in measured)),
            ((first.name, *(response(request, first, second) for second in measured)) for first in measured),
        ),
    )
