"""Turns the sensorgrams of one replicate into a matrix that can be fitted: reference, drift, phases, bins.

The blank (0 nM) is subtracted point by point, and with it the drift that all sensors share. Knows no kinetics.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from prefect_assay.analysis.kinetics.curves import Curve, FloatArray
from prefect_assay.analysis.kinetics.response import Bins, bin_counts

_COMPLETE: Final = 0.8
_LATE_S: Final = 5.0
_GAP_S: Final = 30.0  # a longer gap, of more than `_GAP_STEPS` readings, would be fitted as a straight line
_GAP_STEPS: Final = 10
_NEIGHBORS: Final = 3  # steps on each side of one that say what is usual there
_POINTS_MIN: Final = 20
_WINDOW_S: Final = 30.0
_BENT_S: Final = 20.0
_CORRELATION_ERRORS: Final = 3.0
_RATIO: Final = (0.1, 0.85)


@dataclass(frozen=True, slots=True)
class ShortNoise:
    """Variances of the noise of one sample of one sensor, white and correlated over `tau_s`."""

    white: float
    correlated: float
    tau_s: float


@dataclass(frozen=True, slots=True)
class Matrix:
    """All curves of one replicate on common bins, the blank subtracted.

    `signal` has the shape (c, n): curves by ascending concentration, association and then dissociation.
    """

    concentration_M: FloatArray  # noqa: N815
    phases: tuple[Bins, Bins]
    association_s: float
    signal: FloatArray
    blanks: int
    unit: str
    noise: ShortNoise

    @property
    def times_s(self) -> FloatArray:
        """Mean time of each bin from the start of the run."""
        return np.concatenate([self.phases[0].centre_s, self.phases[1].centre_s + self.association_s])


def complete_curves(curves: Sequence[Curve]) -> tuple[tuple[Curve, ...], tuple[str, ...]]:
    """The curves by ascending concentration, without those that begin late, end early or have a gap, and a line for each of these."""
    longest = max(float(curve.time_s[-1]) for curve in curves)
    kept, left_out = [], []
    for curve in sorted(curves, key=lambda curve: curve.concentration_M):
        if missing := _describe_missing(curve, longest):
            left_out.append(f"left out: the curve at {curve.concentration_M * 1e9:g} nM {missing}")
        else:
            kept.append(curve)
    return tuple(kept), tuple(left_out)


def _describe_missing(curve: Curve, longest_s: float) -> str:
    """Which part of a curve was not measured; empty for a complete one."""
    times = curve.time_s
    if times[-1] < _COMPLETE * longest_s or times[0] > _LATE_S:
        return f"covers only {times[0]:g} to {times[-1]:g} s"
    steps = np.diff(times)
    # A sparse phase next to a dense one has no gap. One reading within a gap does not hide it.
    padded = np.pad(steps, _NEIGHBORS)
    medians = np.median(np.lib.stride_tricks.sliding_window_view(padded, _NEIGHBORS), axis=1)
    usual = np.maximum(medians[: len(steps)], medians[-len(steps) :])
    gaps = np.flatnonzero(steps > np.maximum(_GAP_S, _GAP_STEPS * usual))
    return f"has no readings from {times[gaps[0]]:g} to {times[gaps[0] + 1]:g} s" if gaps.size else ""


def subtract_blanks(curves: Sequence[Curve]) -> tuple[Curve, ...]:
    """The curves with analyte, less the mean of the blanks at the same times; a blank that ends early cuts them."""
    blanks = [curve for curve in curves if curve.concentration_M == 0]
    corrected = []
    for curve in curves:
        if curve.concentration_M == 0:
            continue
        if not blanks:
            corrected.append(curve)
            continue
        kept = curve.time_s <= min(blank.time_s[-1] for blank in blanks) + 1e-9
        time = curve.time_s[kept]
        reference = np.mean([np.interp(time, blank.time_s, blank.signal) for blank in blanks], axis=0)
        corrected.append(Curve(curve.concentration_M, time, curve.signal[kept] - reference))
    return tuple(corrected)


def matrix(curves: Sequence[Curve], association_s: float, *, blanks: int, unit: str) -> Matrix | None:
    """Bring the curves on common bins; None where they cover too little of both phases.

    Args:
        curves: with analyte, the mean of the blanks subtracted.
        association_s: when the dissociation starts.
        blanks: how many were subtracted.
        unit: of the signal.
    """
    step = float(np.median([np.median(np.diff(curve.time_s)) for curve in curves]))
    end = min(curve.time_s[-1] for curve in curves)
    first, last = round(association_s / step), int((end - association_s) / step + 1e-6)
    if first < _POINTS_MIN or last < _POINTS_MIN:
        return None
    grid = [np.arange(first + 1) * step, association_s + np.arange(1, last + 1) * step]
    phases, parts, samples = [], [], []
    for times, start in zip(grid, (0.0, association_s), strict=True):
        counts = np.array(bin_counts(len(times)))
        edges = np.concatenate([[0], np.cumsum(counts)[:-1]])
        values = np.array([np.interp(times, curve.time_s, curve.signal) for curve in curves])
        samples.append(values)
        parts.append(np.add.reduceat(values, edges, axis=1) / counts)
        phases.append(Bins(np.asarray(times[edges] - start, dtype=np.float64), counts.astype(float), step))
    return Matrix(
        np.array([curve.concentration_M for curve in curves]),
        (phases[0], phases[1]),
        association_s,
        np.concatenate(parts, axis=1),
        blanks,
        unit,
        _short_noise(samples, step, blanks),
    )


def _short_noise(phases: Sequence[FloatArray], step_s: float, blanks: int) -> ShortNoise:
    """From windows of half a minute less their parabolas, without the start of each phase where the curves bend."""
    width, lag = max(12, int(_WINDOW_S / step_s)), max(1, round(1.0 / step_s))
    basis, _ = np.linalg.qr(np.vander(np.linspace(-1, 1, width), 3))
    covariances = []
    for values in phases:
        start = min(int(_BENT_S / step_s), values.shape[1] - width)
        for first in range(max(start, 0), values.shape[1] - width + 1, width):
            window = values[:, first : first + width]
            window = window - (window @ basis) @ basis.T
            covariances += [
                [
                    row @ row / (width - 3),
                    row[lag:] @ row[:-lag] / (width - lag),
                    row[2 * lag :] @ row[: -2 * lag] / (width - 2 * lag),
                ]
                for row in window
            ]
    if not covariances:
        return ShortNoise(1e-12, 0.0, 1.0)
    total, first_lag, second_lag = np.mean(covariances, axis=0) / (1 + 1 / blanks if blanks else 1.0)
    # A parabola also takes its share of the correlation.
    first_lag, second_lag = first_lag + 3 * total / width, second_lag + 3 * total / width
    total = max(float(total), 1e-18)
    if first_lag < _CORRELATION_ERRORS * total / np.sqrt(len(covariances) * width):
        return ShortNoise(total, 0.0, 1.0)
    ratio = float(np.clip(second_lag / first_lag, *_RATIO))
    part = min(float(first_lag) / ratio, 0.98 * total)
    return ShortNoise(total - part, part, -lag * step_s / float(np.log(ratio)))
