"""Raw and fitted curves as NumPy arrays, for fits and plots. Times in s, concentrations in M, temperatures in °C."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from prefect_assay.analysis.kinetics.analysis import (
    PackageAnalysis,
    ReplicateKinetics,
    ReplicateMelting,
)

FloatArray = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class Curve:
    """One sensorgram: shape (n,) each."""

    concentration_M: float  # noqa: N815
    time_s: FloatArray
    signal: FloatArray


@dataclass(frozen=True, slots=True)
class FittedCurve:
    """One sensorgram after subtraction of reference and drift, with the fitted curve at the same times (None: not fitted)."""

    curve: Curve
    fitted: FloatArray | None


@dataclass(frozen=True, slots=True)
class FittedReplicate:
    """The curves behind one `ReplicateKinetics`, by ascending concentration; dissociation starts at `dissociation_s`."""

    kinetics: ReplicateKinetics
    curves: tuple[FittedCurve, ...]
    dissociation_s: float


@dataclass(frozen=True, slots=True)
class FittedMelt:
    """The curve behind one `ReplicateMelting`: temperatures in °C and the signal, with the fit (None: not fitted)."""

    melting: ReplicateMelting
    temperature_C: FloatArray  # noqa: N815
    signal: FloatArray
    fitted: FloatArray | None


@dataclass(frozen=True, slots=True)
class AnalyzedPackage:
    """What `analyze` returns: the models for tables and JSON, and the curves behind them for plots."""

    analysis: PackageAnalysis
    replicates: tuple[FittedReplicate, ...]
    melts: tuple[FittedMelt, ...]
