"""Thermal stability: two-state unfolding, read as the fluorescence ratio at 350 and 330 nm; only Tm is drawn.

Enthalpy and heat capacity follow from the length (Robertson and Murphy, Chem. Rev. 97, 1251, 1997).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from assay_lab.measure.assays.assay_type import AssayType
from assay_lab.measure.files import File, format_table, summary_file
from assay_lab.measure.model import compute_mean, compute_spread, expression_of, unfolded_fraction
from assay_lab.measure.request import AssayRequest, Design, make_random
from assay_lab.vocabulary import ExperimentType

FIRST_C: Final = 20.0
LAST_C: Final = 95.0
STEP_C: Final = 0.5
ONSET_FRACTION: Final = 0.05

_TM = (62.0, 11.0, 38.0, 88.0)
_REPLICATE_C = 0.35
_NO_TRANSITION_SHARE = 0.07
_ENTHALPY_60C_PER_RESIDUE = 2_920.0
_HEAT_CAPACITY_PER_RESIDUE = 58.0
_REFERENCE_C = 60.0
_LENGTHS = (40, 180)
_NOISE = 0.0015


@dataclass(frozen=True, slots=True)
class Melt:
    """One melting curve. Temperatures in degrees Celsius; None where no transition is seen."""

    replicate: int
    tm: float | None
    onset: float | None
    temperatures: list[float]
    ratio: list[float]
    initial_330nm: float


def estimate_thermodynamics(residues: str, tm: float) -> tuple[float, float]:
    """Return dHm at Tm in J/mol and dCp in J/(mol K), from the length of the folded part."""
    length = min(max(len(residues), _LENGTHS[0]), _LENGTHS[1])
    heat_capacity = _HEAT_CAPACITY_PER_RESIDUE * length
    return _ENTHALPY_60C_PER_RESIDUE * length + heat_capacity * (tm - _REFERENCE_C), heat_capacity


def make_melts(request: AssayRequest, design: Design) -> list[Melt]:
    """One curve per replicate; none for a design that is not expressed."""
    if expression_of(request, design.residues) == "none":
        return []
    nature = make_random("melting", design.residues)
    mean_c, deviation, low, high = _TM
    folded = nature.random() >= _NO_TRANSITION_SHARE
    tm = min(max(nature.gauss(mean_c, deviation), low), high)
    noise, seed = _REPLICATE_C, tuple[str, ...]()
    if request.landscape and (facts := request.facts(design.residues)) is not None:
        noise, seed = request.landscape["tm_noise"], (request.landscape["seed"],)
        folded, tm = "tm_C" in facts, facts.get("tm_C", tm)
    return [
        _make_melt(
            design.residues,
            make_random("melt", *seed, design.residues, number),
            tm,
            noise,
            number,
            folded=folded,
        )
        for number in range(1, request.n_replicates + 1)
    ]


def _make_melt(
    residues: str, chance: Random, design_tm: float, noise: float, number: int, *, folded: bool
) -> Melt:
    tm = round(design_tm + chance.gauss(0, noise), 2)
    enthalpy, heat_capacity = estimate_thermodynamics(residues, tm)
    temperatures = [FIRST_C + STEP_C * step for step in range(int((LAST_C - FIRST_C) / STEP_C) + 1)]
    unfolded = [
        unfolded_fraction(t, tm=tm, enthalpy=enthalpy, heat_capacity=heat_capacity) if folded else 0.0
        for t in temperatures
    ]
    ratio = [
        (1 - part) * (0.72 + 0.0006 * t) + part * (1.02 + 0.0009 * t) + _NOISE * chance.gauss(0, 1)
        for t, part in zip(temperatures, unfolded, strict=True)
    ]
    onset = _find_onset(tm, enthalpy, heat_capacity) if folded else None
    initial = round(4_000 * 10 ** chance.gauss(0, 0.05), 1)
    return Melt(number, tm if folded else None, onset, temperatures, ratio, initial)


def _find_onset(tm: float, enthalpy: float, heat_capacity: float) -> float:
    """Going down from Tm, the first tenth of a degree where less than `ONSET_FRACTION` is unfolded."""
    tenths = round(tm * 10)
    while tenths > 0 and (
        unfolded_fraction(tenths / 10, tm=tm, enthalpy=enthalpy, heat_capacity=heat_capacity) > ONSET_FRACTION
    ):
        tenths -= 1
    return tenths / 10


def stability_entries(request: AssayRequest) -> list[dict[str, Any]]:
    """The published thermostability variant, and the replicates behind it."""
    return [
        _make_entry(request, design, make_melts(request, design) if design.measured else None)
        for design in request.designs
    ]


def _make_entry(request: AssayRequest, design: Design, curves: list[Melt] | None) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "result_type": "thermostability",
        "sequence_id": design.id,
        "sequence": design.residues,
        "sequence_name": design.name,
        "tm": None,
        "onset_pts_for_ratio": [],
        "inflection_pts_for_ratio": [],
        "initial_330nm": None,
        "bli_result_id": None,
    }
    if curves is None:
        return {**entry, "state": "in_progress", "replicates": []}
    source = request.source(design.residues)
    tms = [curve.tm for curve in curves if curve.tm is not None]
    onset = compute_mean([curve.onset for curve in curves if curve.onset is not None])
    tm = compute_mean(tms)
    return {
        **entry,
        "tm": None if tm is None else round(tm, 2),
        "tm_std": compute_spread(tms),
        "onset_pts_for_ratio": [] if onset is None else [round(onset, 2)],
        # Two states have one inflection, and it lies at Tm.
        "inflection_pts_for_ratio": [] if tm is None else [round(tm, 2)],
        "initial_330nm": compute_mean([curve.initial_330nm for curve in curves]),
        "expression": expression_of(request, design.residues),
        "data_source": source,
        "replicates": [
            {"replicate": curve.replicate, "tm": curve.tm, "onset": curve.onset, "data_source": source}
            for curve in curves
        ],
    }


def stability_files(request: AssayRequest) -> Iterator[File]:
    """The table of replicates and one melting curve per replicate: T in degrees Celsius, ratio F350/F330."""
    measured = [(design, make_melts(request, design)) for design in request.measured_designs]
    yield summary_file(
        request.experiment_id,
        ("name", "replicate", "expression", "tm", "onset", "initial_330nm", "sequence"),
        (
            (
                design.name,
                curve.replicate,
                expression_of(request, design.residues),
                curve.tm,
                curve.onset,
                curve.initial_330nm,
                design.residues,
            )
            for design, curves in measured
            for curve in curves
        ),
    )
    for design, curves in measured:
        for curve in curves:
            rows = zip(curve.temperatures, (round(value, 5) for value in curve.ratio), strict=True)
            yield f"raw_data/{design.stem}_{curve.replicate}.csv", format_table(("T", "ratio"), rows)


THERMOSTABILITY: Final = AssayType(
    experiment_type=ExperimentType.THERMOSTABILITY,
    title="Thermal stability",
    unit_cents=4_900,
    replicate_cents=1_200,
    list_entries=stability_entries,
    make_files=stability_files,
    columns=(("T_m, °C", "tm", "{:.2f}"),),
    landscape_facts=frozenset({"tm_C"}),
    facts_if_missing={"unknown": {}, "none": {}},
)
