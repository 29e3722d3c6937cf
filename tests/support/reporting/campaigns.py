"""Curves of a known model and campaigns of known values, to be drawn."""

import numpy as np

from prefect_assay.analysis.kinetics.analysis import (
    Estimate,
    KineticsFit,
    ReplicateKinetics,
    ReplicateMelting,
    Verdict,
)
from prefect_assay.analysis.kinetics.curves import (
    Curve,
    FittedCurve,
    FittedMelt,
    FittedReplicate,
)
from prefect_assay.analysis.results.design import DesignSummary
from prefect_assay.analysis.results.row import Level, Outcome, ResultRow

ASSOCIATION_S = 180.0
CONCENTRATIONS_M = (1e-8, 3.16e-8, 1e-7, 3.16e-7, 1e-6)


def replicate(name="design", *, kd=7e-8, binds=True, points=960, noise=0.01, **known):
    """Five curves of a 1:1 binder, R_max 1; or a design that does not bind."""
    kon, rng = 7e4, np.random.default_rng(7)
    times = np.linspace(0, 479, points)
    curves = []
    for concentration in CONCENTRATIONS_M:
        rate = kon * (concentration + kd)
        top = concentration / (concentration + kd)
        held = top * -np.expm1(-rate * np.minimum(times, ASSOCIATION_S))
        signal = held * np.exp(-kd * kon * np.maximum(times - ASSOCIATION_S, 0)) * binds
        curve = Curve(concentration, times, signal + rng.normal(0, noise, points))
        curves.append(FittedCurve(curve, signal if binds else None))
    fit = KineticsFit(
        kon_per_M_s=Estimate(value=kon),
        koff_per_s=Estimate(value=kd * kon),
        kd_M=Estimate(value=kd, low=kd * 0.95, high=kd * 1.05),
        kd_uncertainty_M=Estimate(value=kd, low=kd * 0.9, high=kd * 1.1),
        misfit=0.002,
        rmax=(1.0,) * len(CONCENTRATIONS_M),
        mae=noise,
        relative_mae=noise,
    )
    verdict = known.pop("verdict", Verdict.AGREES if binds else Verdict.NO_BINDING)
    kinetics = ReplicateKinetics(
        name=name,
        replicate=known.pop("number", 2),
        unit=known.pop("unit", "nm"),
        concentrations_nM=tuple(1e9 * c for c in CONCENTRATIONS_M),
        verdict=verdict,
        fit=fit if binds else None,
        **known,
    )
    return FittedReplicate(kinetics, tuple(curves), ASSOCIATION_S)


def melt(name="design", *, tm=62.0, fitted=True):
    temperatures = np.linspace(20, 95, 301)
    signal = 0.8 + 0.3 / (1 + np.exp((tm - temperatures) / 2))
    estimate = Estimate(value=tm, low=tm - 1, high=tm + 1) if fitted else None
    melting = ReplicateMelting(
        name=name,
        replicate=1,
        verdict=Verdict.AGREES,
        tm_C=estimate,
        derivative_tm_C=tm + 3 if fitted else None,
    )
    return FittedMelt(melting, temperatures, signal, signal if fitted else None)


def summary(name, kd=None, outcome=None, **known):
    """A measured design with an interval of a factor of two, or one without a number."""
    if kd is not None and not known.get("qualifier"):
        known = {"kd_low_M": kd / 2, "kd_high_M": kd * 2} | known
    outcome = outcome or (Outcome.MEASURED if kd else Outcome.NO_BINDING)
    return DesignSummary(name=name, experiment_code="EX-1", outcome=outcome, kd_M=kd, **known)


def rows(name, *values):
    return [
        ResultRow(
            experiment_code="EX-1",
            result_id="r",
            result_type="affinity",
            level=Level.REPLICATE,
            name=name,
            replicate=number,
            outcome=Outcome.MEASURED,
            kd_M=value,
        )
        for number, value in enumerate(values, start=1)
    ]
