"""One replicate from its sensorgrams to fits, verdict and fitted curves."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from prefect_assay.analysis.kinetics.alternatives import alternatives
from prefect_assay.analysis.kinetics.analysis import (
    CONCENTRATION_ERROR,
    KineticsFit,
    ModelName,
    ReplicateKinetics,
    ServiceValues,
    Verdict,
)
from prefect_assay.analysis.kinetics.curves import (
    Curve,
    FittedCurve,
    FittedReplicate,
    FloatArray,
)
from prefect_assay.analysis.kinetics.global_fit import GlobalFit, Rates, fit_global
from prefect_assay.analysis.kinetics.instrument import Instrument
from prefect_assay.analysis.kinetics.intervals import rounded
from prefect_assay.analysis.kinetics.noise import runs_p
from prefect_assay.analysis.kinetics.prepare import complete_curves, less_blank, matrix
from prefect_assay.analysis.kinetics.response import curve as unit_curve
from prefect_assay.analysis.kinetics.schedule import Schedule
from prefect_assay.analysis.kinetics.two_step import TwoStepFit, fit_two_step
from prefect_assay.analysis.kinetics.verdict import (
    Judged,
    judge_one_concentration,
    judge_response,
    response_of,
)

_CONCENTRATIONS_MIN: Final = 2
_WIDEST_S: Final = 8.0  # of a bin in fits: slow parts of a curve cost time and tell little
_NO_BLANK: Final = ("there is no blank: the drift that all sensors share is not subtracted",)
_TOO_SHORT: Final = ("the curves cover too little of association and dissociation",)


def analyze_replicate(
    name: str,
    replicate: int | None,
    unit: str,
    curves: Sequence[Curve],
    service: ServiceValues,
    schedule: Schedule,
    concentration_error: float = CONCENTRATION_ERROR,
) -> FittedReplicate:
    """Fit all concentrations of one replicate and judge them.

    Args:
        name: of the design.
        replicate: its number.
        unit: of the signal, nm or RU.
        curves: with the blanks.
        service: what the laboratory reports.
        schedule: when the dissociation starts; where that is in doubt, binding gets no number.
        concentration_error: standard deviation, as a share, of what all concentrations are off together.
    """
    association_s = schedule.association_s
    complete, left_out = complete_curves(curves)
    subtracted = less_blank(complete)
    blanks = len(complete) - len(subtracted)
    data = matrix(subtracted, association_s, blanks=blanks, unit=unit) if subtracted else None
    verdict: Verdict = Verdict.REVIEW
    reasons: tuple[str, ...] = _TOO_SHORT
    fits: tuple[KineticsFit, ...] = ()
    fitted = tuple(FittedCurve(curve, {}) for curve in subtracted)
    judged = None if data is None else judge_response(response_of(data), service)
    if judged:
        verdict, reasons = judged
    elif data is not None and len(set(data.concentration_M)) < _CONCENTRATIONS_MIN:
        verdict, reasons = judge_one_concentration(service)
    elif schedule.doubt:
        verdict, reasons = Verdict.REVIEW, (schedule.doubt,)
    elif data is not None:
        coarse = matrix(subtracted, association_s, blanks=blanks, unit=unit, widest_s=_WIDEST_S)
        instrument = Instrument(coarse or data)
        one = fit_global(instrument)
        others = alternatives(instrument, one)
        better = [other for other in others if other.is_better]
        two = fit_two_step(data) if better else None
        fitted = tuple(
            _fitted(curve, instrument, one, two, number) for number, curve in enumerate(subtracted)
        )
        found = [
            _fit("global_1to1", one.precision, one.rates, fitted, one.solution.rmax, concentration_error)
        ]
        if two is not None:
            rates = two.rates.opened_like(one.rates)
            found.insert(0, _fit("two_step", rates, rates, fitted, two.rmax, concentration_error))
        judgement = Judged(one, None if two is None else two.rates, tuple(better), data, service)
        fits = judgement.usable(tuple(found))
        verdict, reasons = judgement.verdict(fits)
    kinetics = ReplicateKinetics(
        name=name,
        replicate=replicate,
        unit=unit,
        concentrations_nM=tuple(rounded(curve.concentration_M * 1e9) for curve in subtracted),
        verdict=verdict,
        reasons=(*reasons, *left_out, *(() if blanks else _NO_BLANK)),
        fits=fits,
        service=service,
    )
    return FittedReplicate(kinetics, fitted, association_s)


def _fitted(
    curve: Curve, instrument: Instrument, one: GlobalFit, two: TwoStepFit | None, number: int
) -> FittedCurve:
    data = instrument.data
    before = len(data.phases[0].count)
    times, values = data.times_s, one.solution.fitted[number]
    split = [
        np.interp(curve.time_s, times[part], values[part]) for part in (slice(before), slice(before, None))
    ]
    models: dict[ModelName, FloatArray] = {
        "global_1to1": np.where(curve.time_s <= data.association_s, *split),
    }
    if two is not None:
        models["two_step"] = _steps(curve, two, number, data.association_s)
    return FittedCurve(curve, models)


def _steps(curve: Curve, fit: TwoStepFit, number: int, association_s: float) -> FloatArray:
    kon, koff = np.exp(fit.rates.kon.best), np.exp(fit.rates.koff.best)
    rising = fit.rmax[number] * unit_curve(curve.time_s, kon, koff, curve.concentration_M, association_s)
    after = (
        fit.amplitude[number] * np.exp(-koff * np.maximum(curve.time_s - association_s, 0))
        + fit.offset[number]
    )
    return np.asarray(np.where(curve.time_s <= association_s, rising, after))


def _fit(
    model: ModelName,
    precision: Rates,
    rates: Rates,
    fitted: Sequence[FittedCurve],
    rmax: FloatArray,
    concentration_error: float,
) -> KineticsFit:
    residuals = [item.curve.signal - item.fitted[model] for item in fitted]
    highest = max(float(np.max(np.abs(item.curve.signal))) for item in fitted)
    mae = float(np.mean(np.abs(np.concatenate(residuals))))
    return KineticsFit(
        model=model,
        kon_per_M_s=precision.kon.estimate(),
        koff_per_s=precision.koff.estimate(),
        kd_M=precision.kd.estimate(),
        kd_uncertainty_M=rates.kd.widened(float(np.log1p(concentration_error))).estimate(),
        rmax=tuple(rounded(float(value)) for value in rmax),
        mae=rounded(mae),
        relative_mae=rounded(mae / highest),
        runs_p=rounded(runs_p(residuals)),
    )
