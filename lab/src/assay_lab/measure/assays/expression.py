"""Expression, in a shape of the lab's own: no other is published."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from assay_lab.measure.assays.assay_type import AssayType
from assay_lab.measure.assays.replicates import Row, list_entries, make_table
from assay_lab.measure.files import File
from assay_lab.measure.model import compute_mean, compute_spread, expression_of
from assay_lab.measure.request import AssayRequest, Design, make_random
from assay_lab.vocabulary import ExperimentType

_YIELD_MG_PER_L = {"high": 120.0, "medium": 30.0, "low": 5.0, "none": 0.0}
_LEAST_MG_PER_L = {"high": 60.0, "medium": 12.0, "low": 0.0}  # between the classes' yields, by their ratio
_WATER_DA = 18.015
_RESIDUE_DA: Final = {
    "A": 71.08, "R": 156.19, "N": 114.10, "D": 115.09, "C": 103.14, "E": 129.12, "Q": 128.13,
    "G": 57.05, "H": 137.14, "I": 113.16, "L": 113.16, "K": 128.17, "M": 131.19, "F": 147.18,
    "P": 97.12, "S": 87.08, "T": 101.10, "W": 186.21, "Y": 163.18, "V": 99.13,
}  # fmt: skip


def molecular_weight(residues: str) -> float:
    """Average mass in Da, summed over the chains."""
    return sum(
        sum(_RESIDUE_DA.get(letter, 110.0) for letter in chain) + _WATER_DA
        for chain in residues.split(":")
        if chain
    )


def expression_entries(request: AssayRequest) -> list[Row]:
    """Yield in mg per litre of culture, and the concentration in nM that it makes."""
    return list_entries(request, "expression", partial(_make_yield, request), _yield_summary)


def expression_files(request: AssayRequest) -> Iterator[File]:
    """The table of replicates."""
    yield make_table(
        request, ("expression", "yield_mg_per_l", "purity_percent"), partial(_make_yield, request)
    )


def _make_yield(request: AssayRequest, design: Design, number: int) -> Row:
    expression, typical = _get_class_and_yield(request, design.residues)
    seed = (request.landscape["seed"],) if request.landscape else ()
    chance = make_random("titre replicate", *seed, design.residues, number)
    made = expression != "none"
    return {
        "expression": expression,
        "yield_mg_per_l": round(typical * 10 ** chance.gauss(0, 0.05), 2) if made else 0.0,
        "purity_percent": round(min(99.0, chance.gauss(93, 3)), 1) if made else None,
    }


def _get_class_and_yield(request: AssayRequest, residues: str) -> tuple[str, float]:
    """Expression class and mg/L, from the landscape or the model; one of the two that is missing follows from the other."""
    stated = (request.facts(residues) or {}).get("yield_mg_per_l")
    if stated is None:
        expression = expression_of(request, residues)
        return expression, _YIELD_MG_PER_L[expression] * 10 ** make_random("titre", residues).gauss(0, 0.12)
    nearest = next(name for name, least in _LEAST_MG_PER_L.items() if stated >= least) if stated else "none"
    return (request.facts(residues) or {}).get("expression", nearest), stated


def _yield_summary(design: Design, rows: list[Row]) -> Row:
    values = [row["yield_mg_per_l"] for row in rows]
    average = compute_mean(values) or 0.0
    concentration = round(average / molecular_weight(design.residues) * 1e6, 1)
    return {
        "expression": rows[0]["expression"],
        "yield_mean": average,
        "yield_std": compute_spread(values),
        "yield_units": "mg/L",
        "concentration_value": concentration or None,
        "concentration_display": f"{concentration:.1f}" if concentration else "<5.0",
        "molecular_weight_da": round(molecular_weight(design.residues), 1),
    }


EXPRESSION: Final = AssayType(
    experiment_type=ExperimentType.EXPRESSION,
    title="Expression yield",
    unit_cents=3_900,
    replicate_cents=900,
    list_entries=expression_entries,
    make_files=expression_files,
    columns=(("Yield, mg/L", "yield_mean", "{:.1f}"),),
    landscape_facts=frozenset({"yield_mg_per_l", "expression"}),
    facts_if_missing={"unknown": {}, "none": {"expression": "none"}},
)
