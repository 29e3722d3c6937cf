"""Sensorgrams of the binding assays, measured ones where they exist, their 1:1 fits, and the data package of both.

A modelled curve is the 1:1 response, plus a drift that the blank (0 nM) shares, plus white noise.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from assay_lab.measure.bundled import Replicate, data_folder, raw_curve
from assay_lab.measure.files import File, format_table, summary_file
from assay_lab.measure.model import (
    NM,
    RUN_S,
    STEP_S,
    binding_signal,
    make_replicates,
    make_timeline,
    measured_of,
)
from assay_lab.measure.request import AssayRequest, Design, make_random

COARSE_STEP_S: Final = 1.0
FINE_CURVES_MAX: Final = 200
"""Up to so many curves are sampled every 0.2 s; a bigger package is sampled every second."""

_RMAX_NM = {"high": 6.0, "medium": 3.0, "low": 1.2}
_NOISE_NM = 0.004
_DRIFT_NM = 0.15
_OWN_DRIFT_NM = 0.015
_RU_PER_NM = 20.0
_NOISE_LENGTH = 16_384
_FIT_EVERY_S = 2.0


@dataclass(frozen=True, slots=True)
class Curve:
    """One sensorgram: seconds, and nm (BLI) or RU (SPR)."""

    concentration: float
    times: list[float]
    signal: list[float]
    source: str


@dataclass(frozen=True, slots=True)
class Fit:
    """The global 1:1 fit of one replicate with its constants held and Rmax free. Errors in the signal's unit."""

    rmax: float
    mae: float
    relative_mae: float
    curves: tuple[Curve, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """All sensorgrams of one replicate of one design."""

    design: Design
    replicate: Replicate
    curves: tuple[Curve, ...]
    fit: Fit | None


def iterate_runs(request: AssayRequest) -> Iterator[Run]:
    """Every replicate that was measured, one after the other, so that only one is in memory."""
    count = len(request.measured_designs) * request.n_replicates * len(request.concentrations)
    step = STEP_S if count <= FINE_CURVES_MAX else COARSE_STEP_S
    for design in request.measured_designs:
        for replicate in make_replicates(request, design.residues):
            if replicate.expression == "none":
                continue
            curves = tuple(
                _find_measured(request, design, replicate, concentration)
                or _model_curve(request, design, replicate, concentration, step)
                for concentration in request.concentrations
            )
            yield Run(
                design, replicate, curves, _fit_replicate(replicate, curves) if replicate.binds else None
            )


def _find_measured(
    request: AssayRequest, design: Design, replicate: Replicate, concentration: float
) -> Curve | None:
    rows = measured_of(request, design.residues)
    if replicate.source != "measured" or not rows:
        return None
    curve = raw_curve(rows[0].name, replicate.number, concentration)
    return Curve(concentration, *curve, "measured") if curve else None


def _model_curve(
    request: AssayRequest, design: Design, replicate: Replicate, concentration: float, step: float
) -> Curve:
    scale = _RU_PER_NM if request.signal_unit == "RU" else 1.0
    seed = (design.residues, request.target_key, request.method, replicate.number)
    shared = make_random("sensor", *seed)
    rmax = scale * _RMAX_NM[replicate.expression] * 10 ** shared.gauss(0, 0.06)
    curve_random = make_random("curve", *seed, concentration)
    slope = -scale * (_DRIFT_NM * shared.random() + _OWN_DRIFT_NM * curve_random.gauss(0, 1)) / RUN_S
    times = make_timeline(step)
    if replicate.kon is None or replicate.koff is None:
        clean = [0.0] * len(times)
    else:
        clean = binding_signal(
            times, concentration_m=concentration * NM, kon=replicate.kon, koff=replicate.koff, rmax=rmax
        )
    sigma = scale * _NOISE_NM
    start = curve_random.randrange(_NOISE_LENGTH)
    noise = _draw_noise()[start : start + len(times)]
    return Curve(
        concentration,
        times,
        [y + slope * t + sigma * n for y, t, n in zip(clean, times, noise, strict=True)],
        "model",
    )


@cache
def _draw_noise() -> list[float]:
    """Standard normal noise, drawn once and read from different starting points, because drawing is slow."""
    chance = make_random("noise")
    values = [chance.gauss(0, 1) for _ in range(_NOISE_LENGTH)]
    return values + values


def _fit_replicate(replicate: Replicate, curves: tuple[Curve, ...]) -> Fit:
    """Least squares for Rmax over all concentrations, after subtracting the blank, every two seconds."""
    kon, koff = replicate.kon or 0.0, replicate.koff or 0.0
    blank = next((curve for curve in curves if curve.concentration == 0), None)
    shapes, signals, thinned = [], [], []
    for curve in curves:
        if curve.concentration == 0:
            continue
        every = max(1, round(_FIT_EVERY_S / (curve.times[1] - curve.times[0])))
        times = curve.times[::every]
        signals.append(_less_blank(curve.signal[::every], times, blank))
        shapes.append(
            binding_signal(times, concentration_m=curve.concentration * NM, kon=kon, koff=koff, rmax=1.0)
        )
        thinned.append((curve.concentration, times))
    flat_shape = [value for shape in shapes for value in shape]
    flat_signal = [value for signal in signals for value in signal]
    weight = sum(value * value for value in flat_shape)
    rmax = sum(s * y for s, y in zip(flat_shape, flat_signal, strict=True)) / weight if weight else 0.0
    residuals = [abs(y - rmax * s) for s, y in zip(flat_shape, flat_signal, strict=True)]
    mae = sum(residuals) / len(residuals) if residuals else 0.0
    highest = max((abs(value) for value in flat_signal), default=0.0)
    fitted = tuple(
        Curve(concentration, times, [rmax * value for value in shape], "fit")
        for (concentration, times), shape in zip(thinned, shapes, strict=True)
    )
    return Fit(rmax, mae, mae / highest if highest else 0.0, fitted)


def _less_blank(signal: list[float], times: list[float], blank: Curve | None) -> list[float]:
    """Reference subtraction, point by point; a blank that ends early holds its last value."""
    if blank is None:
        return signal
    step = blank.times[1] - blank.times[0]
    last = len(blank.signal) - 1
    return [y - blank.signal[min(last, round(t / step))] for y, t in zip(signal, times, strict=True)]


def binding_files(request: AssayRequest) -> Iterator[File]:
    """Every file of an affinity or screening package."""
    yield summary_file(request.experiment_id, _SUMMARY, _summary_rows(request))
    info: list[Sequence[Any]] = []
    sources: list[Sequence[Any]] = []
    for run in iterate_runs(request):
        stem = f"{run.design.stem}_{run.replicate.number}"
        for curve in run.curves:
            path = f"raw_data/{stem}_{curve.concentration}.csv"
            yield path, curve_text(curve)
            step = round(curve.times[1] - curve.times[0], 3)
            where = (path, run.design.name, run.replicate.number, curve.concentration)
            sources.append((*where, curve.source, step, request.signal_unit))
        for curve in run.fit.curves if run.fit else ():
            yield f"fit_data/{stem}_{curve.concentration}.csv", curve_text(curve)
        fit = run.fit
        errors = (fit.mae, fit.relative_mae, fit.rmax) if fit else (None, None, None)
        rounded = (None if error is None else round(error, 6) for error in errors)
        origin = "+".join(sorted({curve.source for curve in run.curves}))
        info.append((run.design.name, run.replicate.number, request.method, *rounded, origin))
    yield (
        "aux/replicate_info.csv",
        format_table(("name", "replicate", "method", "MAE", "rel_MAE", "rmax_estimate", "source"), info),
    )
    yield (
        "aux/curve_sources.csv",
        format_table(
            ("file", "name", "replicate", "concentration_nm", "source", "step_s", "signal_unit"), sources
        ),
    )
    if request.against_egfr and any(measured_of(request, design.residues) for design in request.designs):
        folder = data_folder() / "egfr_round1"
        yield "aux/LICENSE-egfr_round1.txt", (folder / "LICENSE").read_text(encoding="utf-8")
        yield "aux/README-egfr_round1.md", (folder / "README.md").read_text(encoding="utf-8")


_SUMMARY = ("name", "replicate", "expression", "binding", "kd", "kon", "koff", "sequence", "binding_strength")


def _summary_rows(request: AssayRequest) -> Iterator[Sequence[Any]]:
    kinetic = request.experiment_type == "affinity"
    for design in request.measured_designs:
        for row in make_replicates(request, design.residues):
            constants = (row.kd, row.kon, row.koff) if kinetic else (None, None, None)
            called = (row.number, row.expression, row.binding)
            yield design.name, *called, *constants, design.residues, row.binding_strength


def curve_text(curve: Curve) -> str:
    """Columns t and y. One formatting call per curve: this is where a big package spends its time."""
    if curve.source == "measured":
        rows = zip(curve.times, curve.signal, strict=True)
        return "t,y\n" + "".join(f"{t!r},{y!r}\n" for t, y in rows)
    return _make_template(tuple(curve.times)) % tuple(curve.signal)


@cache
def _make_template(times: tuple[float, ...]) -> str:
    return "t,y\n" + "".join(f"{t:.1f},%.5f\n" for t in times)
