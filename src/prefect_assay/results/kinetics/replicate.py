"""One replicate from its sensorgrams to fits, verdict and fitted curves."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from prefect_assay.results.kinetics.analysis import (
    KineticsFit,
    ModelName,
    ReplicateKinetics,
    ServiceValues,
    Verdict,
)
from prefect_assay.results.kinetics.curves import Curve, FittedCurve, FittedReplicate, FloatArray
from prefect_assay.results.kinetics.global_fit import GlobalFit, Rates, fit_global
from prefect_assay.results.kinetics.intervals import rounded
from prefect_assay.results.kinetics.noise import runs_p
from prefect_assay.results.kinetics.prepare import Matrix, complete_curves, less_blank, matrix
from prefect_assay.results.kinetics.response import curve as unit_curve
from prefect_assay.results.kinetics.two_step import TwoStepFit, fit_two_step
from prefect_assay.results.kinetics.verdict import (
    judge,
    judge_one_concentration,
    judge_response,
    misfit,
    response_of,
    usable,
)

_CONCENTRATIONS_MIN: Final = 2
_NO_BLANK: Final = ("there is no blank: the drift that all sensors share is not subtracted",)
_TOO_SHORT: Final = ("the curves cover too little of association and dissociation",)


def analyze_replicate(
    name: str,
    replicate: int | None,
    unit: str,
    curves: Sequence[Curve],
    service: ServiceValues,
    association_s: float,
) -> FittedReplicate:
    """Fit both models to all concentrations of one replicate and judge them."""
    complete, left_out = complete_curves(curves)
    subtracted = less_blank(complete)
    has_blank = len(subtracted) < len(complete)
    data = matrix(subtracted, association_s, has_blank=has_blank, unit=unit) if subtracted else None
    verdict: Verdict = Verdict.REVIEW
    reasons: tuple[str, ...] = _TOO_SHORT
    fits: tuple[KineticsFit, ...] = ()
    fitted = tuple(FittedCurve(curve, {}) for curve in subtracted)
    judged = None if data is None else judge_response(response_of(data), service)
    if judged:
        verdict, reasons = judged
    elif data is not None and len(set(data.concentration_M)) < _CONCENTRATIONS_MIN:
        verdict, reasons = judge_one_concentration(service)
    elif data is not None:
        one, two = fit_global(data), fit_two_step(data)
        fitted = tuple(_fitted(curve, one, two, number, data) for number, curve in enumerate(subtracted))
        both = (
            _fit("global_1to1", one.rates, (one.rmax,), fitted, one.residuals),
            _fit("two_step", two.rates, tuple(map(float, two.rmax)), fitted, two.residuals),
        )
        left = misfit(one.residuals, data)
        fits = usable(both, left, data, service)
        verdict, reasons = judge(fits, left, data, service)
    kinetics = ReplicateKinetics(
        name=name,
        replicate=replicate,
        unit=unit,
        concentrations_nM=tuple(rounded(curve.concentration_M * 1e9) for curve in subtracted),
        verdict=verdict,
        reasons=(*reasons, *left_out, *(() if has_blank else _NO_BLANK)),
        fits=fits,
        service=service,
    )
    return FittedReplicate(kinetics, fitted, association_s)


def _fitted(curve: Curve, one: GlobalFit, two: TwoStepFit, number: int, data: Matrix) -> FittedCurve:
    models: dict[ModelName, FloatArray] = {
        "global_1to1": _global(curve, one, data.association_s),
        "two_step": _steps(curve, two, number, data.association_s),
    }
    return FittedCurve(curve, models)


def _global(curve: Curve, fit: GlobalFit, association_s: float) -> FloatArray:
    kon, koff = np.exp(fit.rates.kon.best), np.exp(fit.rates.koff.best)
    return np.asarray(fit.rmax * unit_curve(curve.time_s, kon, koff, curve.concentration_M, association_s))


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
    rates: Rates,
    rmax: tuple[float, ...],
    fitted: Sequence[FittedCurve],
    residuals: FloatArray,
) -> KineticsFit:
    absolute = np.concatenate([np.abs(item.curve.signal - item.fitted[model]) for item in fitted])
    highest = max(float(np.max(np.abs(item.curve.signal))) for item in fitted)
    mae = float(absolute.mean())
    return KineticsFit(
        model=model,
        kon_per_M_s=rates.kon.estimate(),
        koff_per_s=rates.koff.estimate(),
        kd_M=rates.kd.estimate(),
        rmax=tuple(rounded(value) for value in rmax),
        mae=rounded(mae),
        relative_mae=rounded(mae / highest),
        runs_p=rounded(runs_p(residuals)),
    )
