"""When the dissociation starts: found from the curves of a package, and checked. Knows no rate constants.

Where curves fall, they turn sharply from rising or level to falling. Where they do not, each is an exponential with an
offset before that time and another one after it; the times are compared by what these leave. Both have to agree, and
one time has to be clearly better than all others; else the start stays uncertain. Instruments are programmed in tens of
seconds: a time next to one is that one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Final

import numpy as np

from prefect_assay.analysis.kinetics.curves import Curve, FloatArray
from prefect_assay.analysis.kinetics.prepare import complete_curves, subtract_blanks

NOMINAL_ASSOCIATION_S: Final = 180.0
"""The service's schedule, where no curve of a package shows a response."""
_RATES: Final = np.concatenate([[1e-5], np.geomspace(3e-4, 0.5, 30)])
_STEP_S: Final = 1.0
_EDGE_S: Final = 15.0
_TENS_S: Final = 10.0
_OFF_S: Final = 4.0
_APART_S: Final = 15.0
_TURN_S: Final = 10.0
_TURN_NOISES: Final = 10.0
_CORRELATED: Final = 3.0
_CLEARLY: Final = 40.0
_RESPONSES: Final = 15.0
_REPLICATES: Final = 12


@dataclass(frozen=True, slots=True)
class Schedule:
    """When the dissociation starts, in s, and another time that fits as well (None: the curves leave no doubt)."""

    association_s: float
    rival_s: float | None = None

    @property
    def doubt(self) -> str | None:
        """Why no rate can be trusted, and what decides; None if all of them can."""
        if self.rival_s is None:
            return None
        return (
            f"the curves do not tell when the dissociation starts: {self.association_s:.0f} s and {self.rival_s:.0f} s"
            " both fit; give the right one to `prefect-assay kinetics` with --association-s"
        )


def find_schedule(replicates: Iterable[Sequence[Curve]]) -> Schedule:
    """The schedule of all replicates of a package, each given as its curves with blanks."""
    curves = tuple(replicates)
    responses = sorted(
        (item for replicate in curves if (item := _costs(replicate))), key=lambda item: -item[0]
    )
    if not responses:
        return Schedule(NOMINAL_ASSOCIATION_S)
    samples = min(len(costs) for _, costs in responses)
    total = np.sum([costs[:samples] for _, costs in responses[:_REPLICATES]], axis=0)
    tens = np.arange(0.0, samples * _STEP_S, _TENS_S)
    at_tens = total[(tens / _STEP_S).astype(int)]
    start = float(tens[int(np.argmin(at_tens))])
    turns = [turn for replicate in curves if (turn := _turn(replicate)) is not None]
    if turns:
        turn = float(np.median(turns))
        whole = float(_TENS_S * np.round(turn / _TENS_S))
        # A turn between two tens takes the one that the segments prefer.
        sharp = whole if abs(turn - whole) <= _OFF_S else start if abs(turn - start) <= _TENS_S else turn
        return Schedule(sharp, start if abs(sharp - start) > _APART_S else None)
    gap = np.where(tens == start, np.inf, at_tens - total[int(start / _STEP_S)])
    best = float(np.argmin(total) * _STEP_S)
    if abs(best - start) > _OFF_S:
        return Schedule(best, start)
    return Schedule(start, float(tens[int(np.argmin(gap))]) if gap.min() < _CLEARLY else None)


def _turn(curves: Sequence[Curve]) -> float | None:
    """When the dissociation of the highest curve starts, in s; None where no curve shows it.

    It is where the signal turns from rising or level to falling. The fall counts, not the turn: a fast association
    bends more sharply where it levels off, but nothing falls there. Among the times with at least half of the largest
    fall, the second difference over `_TURN_S` has its lowest value.
    """
    subtracted = subtract_blanks(complete_curves(curves)[0])
    if not subtracted:
        return None
    curve = max(subtracted, key=lambda curve: float(np.max(curve.signal)))
    step = float(np.median(np.diff(curve.time_s)))
    lag = max(1, round(_TURN_S / step))
    times = np.arange(int((curve.time_s[-1] - curve.time_s[0]) / step)) * step + curve.time_s[0]
    if len(times) <= 2 * lag:
        return None
    signal = np.interp(times, curve.time_s, curve.signal)
    before, middle, after = signal[: -2 * lag], signal[lag:-lag], signal[2 * lag :]
    falls = middle - after - np.maximum(before - middle, 0.0)
    largest = float(np.max(falls))
    # Second differences: in first ones the slope of a curve without noise would pass for noise.
    noise = float(np.median(np.abs(np.diff(signal, 2)))) / sqrt(3.0)
    if largest <= _TURN_NOISES * noise:
        return None
    turn = np.where(falls >= 0.5 * largest, after - 2 * middle + before, np.inf)
    return float(times[lag + int(np.argmin(turn))])


def _costs(curves: Sequence[Curve]) -> tuple[float, FloatArray] | None:
    """Response over noise; for each second as the start -2 log likelihood; None without a response."""
    subtracted = subtract_blanks(complete_curves(curves)[0])
    if not subtracted:
        return None
    end = min(float(curve.time_s[-1]) for curve in subtracted)
    edges: FloatArray = np.arange(int(end / _STEP_S) + 1, dtype=np.float64) * _STEP_S
    if len(edges) <= 2 * _EDGE_S:
        return None
    # The mean of each second around its whole number; a single sample there is itself.
    signal: FloatArray = np.array([_means(curve, edges) for curve in subtracted])
    noise = float(np.median(np.abs(np.diff(signal, 2)))) / 0.6745 / np.sqrt(6.0)
    response = float(
        np.ptp(np.median(signal[:, : len(edges) // 10 * 10].reshape(len(signal), -1, 10), axis=2))
    )
    if response <= _RESPONSES * noise:
        return None
    squares = np.sum([_two_segments(edges, row) for row in signal], axis=0)
    floor = signal.size * max(noise, 1e-6 * response) ** 2 / 4
    costs = signal.size / _CORRELATED * np.log(np.maximum(squares, floor))
    edge = int(_EDGE_S / _STEP_S)
    costs[:edge], costs[-edge:] = np.inf, np.inf
    return response / max(noise, 1e-12), costs


def _means(curve: Curve, times: FloatArray) -> FloatArray:
    step = float(np.median(np.diff(curve.time_s)))
    if step >= _STEP_S:
        return np.interp(times, curve.time_s, curve.signal)
    # The integral of the curve, so that every sample counts.
    area = np.concatenate(
        [[0.0], np.cumsum(np.diff(curve.time_s) * (curve.signal[1:] + curve.signal[:-1]) / 2)]
    )
    ends = np.clip(np.stack([times - _STEP_S, times]), curve.time_s[0], curve.time_s[-1])
    early, late = (np.interp(end, curve.time_s, area) for end in ends)
    width = ends[1] - ends[0]
    return np.where(
        width > 0, (late - early) / np.maximum(width, 1e-9), np.interp(times, curve.time_s, curve.signal)
    )


def _two_segments(times: FloatArray, signal: FloatArray) -> FloatArray:
    """Sum of squares of both segments' best fits, for each time as the last one of the first segment, shape (n,)."""
    shape = np.exp(-_RATES[:, None] * times)
    terms = [np.ones_like(shape), shape, shape**2, shape * signal]
    plain = np.broadcast_to(signal, shape.shape)
    terms += [plain, plain**2]
    before = [np.cumsum(term, axis=1) for term in terms]
    after = [np.cumsum(term[:, ::-1], axis=1)[:, ::-1] for term in terms]
    first = _squares(before).min(axis=0)
    last = np.append(_squares(after).min(axis=0)[1:], np.inf)
    return np.asarray(first + last)


def _squares(sums: Sequence[FloatArray]) -> FloatArray:
    """Least squares of a line in exp(-k t), from the sums over the samples of each segment."""
    n, x, xx, xy, y, yy = sums
    spread, together, total = xx - x**2 / n, xy - x * y / n, yy - y**2 / n
    usable = spread > 1e-9 * xx
    gain = np.where(usable, together**2 / np.where(usable, spread, 1.0), 0.0)
    return np.asarray(np.maximum(total - np.minimum(gain, total), 0.0))
