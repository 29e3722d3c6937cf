"""One replicate from its sensorgrams to the fit, the second opinion, the verdict and fitted curves."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from prefect_assay.analysis.kinetics.analysis import (
    CONCENTRATION_ERROR,
    Estimate,
    KineticsFit,
    ReplicateKinetics,
    ServiceValues,
    Verdict,
)
from prefect_assay.analysis.kinetics.curves import Curve, FittedCurve, FittedReplicate
from prefect_assay.analysis.kinetics.fit import GlobalFit, fit_one_to_one
from prefect_assay.analysis.kinetics.intervals import rounded
from prefect_assay.analysis.kinetics.prepare import complete_curves, matrix, subtract_blanks
from prefect_assay.analysis.kinetics.schedule import Schedule
from prefect_assay.analysis.kinetics.steady_state import fit_steady_state
from prefect_assay.analysis.kinetics.verdict import (
    Judged,
    Judgement,
    judge_one_concentration,
    judge_without_rates,
    measure_response,
)
from prefect_assay.analysis.threads import use_one_thread

_CONCENTRATIONS_MIN: Final = 2
_NO_BLANK: Final = ("there is no blank: the drift that all curves share is not subtracted",)
_TOO_SHORT: Final = ("the curves cover too little of association and dissociation",)


@use_one_thread()
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
        schedule: when the dissociation starts; where that is uncertain, binding gets no number.
        concentration_error: standard deviation, as a share, of what all concentrations are off together.
    """
    association_s = schedule.association_s
    complete, left_out = complete_curves(curves)
    subtracted = subtract_blanks(complete)
    blanks = len(complete) - len(subtracted)
    data = matrix(subtracted, association_s, blanks=blanks, unit=unit) if subtracted else None
    judgement: Judgement = (Verdict.REVIEW, _TOO_SHORT)
    fit: KineticsFit | None = None
    plateau: Estimate | None = None
    brackets_kd: bool | None = None
    fitted = tuple(FittedCurve(curve, None) for curve in subtracted)
    if data is not None:
        response = measure_response(data)
        is_screen = len(set(data.concentration_M)) < _CONCENTRATIONS_MIN
        one = None if response.is_absent else fit_one_to_one(data)
        steady = fit_steady_state(subtracted, association_s, response.error) if one else None
        if steady is not None and steady.kd.closed and steady.has_saturation:
            plateau = steady.kd.widened(float(np.log1p(concentration_error))).to_estimate()
        if without := judge_without_rates(response, one, steady, service):
            judgement = without
        elif is_screen or one is None:
            judgement = judge_one_concentration(service)
        elif schedule.doubt:
            judgement = Verdict.REVIEW, (schedule.doubt,)
        else:
            judged = Judged(one, steady, data, service)
            judgement = judged.verdict()
            if judged.is_usable:
                fitted = tuple(
                    FittedCurve(curve, one.curve(number, curve)) for number, curve in enumerate(subtracted)
                )
                fit = _describe(one, fitted, concentration_error)
                brackets_kd = judged.brackets_kd
    verdict, reasons = judgement
    kinetics = ReplicateKinetics(
        name=name,
        replicate=replicate,
        unit=unit,
        concentrations_nM=tuple(rounded(curve.concentration_M * 1e9) for curve in subtracted),
        verdict=verdict,
        reasons=(*reasons, *left_out, *(() if blanks else _NO_BLANK)),
        fit=fit,
        steady_state_kd_M=plateau,
        brackets_kd=brackets_kd,
        service=service,
    )
    return FittedReplicate(kinetics, fitted, association_s)


def _describe(fit: GlobalFit, fitted: Sequence[FittedCurve], concentration_error: float) -> KineticsFit:
    residuals = [item.curve.signal - item.fitted for item in fitted if item.fitted is not None]
    highest = max(float(np.max(np.abs(item.curve.signal))) for item in fitted)
    mae = float(np.mean(np.abs(np.concatenate(residuals))))
    return KineticsFit(
        kon_per_M_s=fit.rates.kon.to_estimate(),
        koff_per_s=fit.rates.koff.to_estimate(),
        kd_M=fit.rates.kd.to_estimate(),
        kd_uncertainty_M=fit.rates.kd.widened(float(np.log1p(concentration_error))).to_estimate(),
        misfit=rounded(fit.misfit),
        rmax=tuple(rounded(float(value)) for value in fit.rmax),
        kd_one_rmax_M=None if fit.kd_one_rmax is None else rounded(fit.kd_one_rmax),
        kd_free_rmax_M=None if fit.kd_free_rmax is None else rounded(fit.kd_free_rmax),
        mae=rounded(mae),
        relative_mae=rounded(mae / highest),
    )
