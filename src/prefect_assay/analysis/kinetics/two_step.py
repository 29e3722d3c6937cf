"""`two_step`: k_off from the dissociation alone, then k_on from the association with that k_off.

Dissociation: amplitude and offset per curve, k_off shared, cropped at its start by one time constant of its fast
phase, if it has one. Association: Rmax per curve, k_on shared.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from prefect_assay.analysis.kinetics.curves import FloatArray
from prefect_assay.analysis.kinetics.global_fit import Rates, rate_bounds
from prefect_assay.analysis.kinetics.intervals import LogInterval, interval, minimum
from prefect_assay.analysis.kinetics.noise import Noise, influence, noise_of
from prefect_assay.analysis.kinetics.prepare import Matrix
from prefect_assay.analysis.kinetics.response import Bins, saturation

_FAST_S: Final = (2.0, 60.0)
_FAST_SHARE: Final = 5.0
_SEPARATE: Final = 2.0
_FAST_GAIN: Final = 0.5
_RATES: Final = 24
_STEP: Final = 1e-4
_VANISHED: Final = 5.0
_EXACT: Final = 1e-12


@dataclass(frozen=True, slots=True)
class TwoStepFit:
    """The rates; Rmax, amplitude and offset of each curve, shape (c,); the crop in s; weighted residuals."""

    rates: Rates
    rmax: FloatArray
    amplitude: FloatArray
    offset: FloatArray
    crop_s: float
    residuals: FloatArray


def fit_two_step(data: Matrix, crop_s: float | None = None) -> TwoStepFit:
    """Fit both steps; `crop_s` replaces the crop of the rule."""
    crop = fast_phase(data) if crop_s is None else crop_s
    on, off = rate_bounds(data)
    dissociation = _Dissociation(data, crop)
    if crop > 0:  # what is faster has vanished within the crop
        off = (off[0], min(off[1], float(np.log(_VANISHED / crop))))
    koff = minimum(dissociation.squares, off)
    off_ends = interval(
        dissociation.squares, koff, _growth(dissociation.noise(koff), dissociation.slope(koff)), off
    )
    association = _Association(data)

    def kon_at(log_koff: float) -> float:
        return minimum(lambda log_kon: association.squares(log_kon, log_koff), on)

    kon = kon_at(koff)
    growth = _growth(association.noise(kon, koff), association.slope(kon, koff))
    on_ends = interval(lambda log_kon: association.squares(log_kon, koff), kon, growth, on)
    by_off = [None if end is None else kon_at(end) - kon for end in (off_ends.low, off_ends.high)]
    of_kd = [
        None if end is None or move is None else end - koff - move
        for end, move in zip((off_ends.low, off_ends.high), by_off, strict=True)
    ]
    errors = _Errors(association, dissociation, kon, koff, association.moved_by_koff(kon, koff))
    amplitude, offset = dissociation.linear(koff)
    return TwoStepFit(
        Rates(
            _combined(kon, on_ends, by_off, errors.widening(1.0, 0.0)),
            off_ends,
            _combined(koff - kon, _mirrored(on_ends), of_kd, errors.widening(-1.0, 1.0)),
        ),
        association.rmax(kon, koff),
        amplitude,
        offset,
        crop,
        np.concatenate([association.residuals(kon, koff), dissociation.residuals(koff)], axis=1),
    )


def fast_phase(data: Matrix) -> float:
    """The crop rule: one time constant of the fast phase, in s; 0 for a dissociation with one phase."""
    step = _Dissociation(data, 0.0)
    _, off = rate_bounds(data)
    single = float(step.squares(np.array([minimum(step.squares, off)]))[0])
    if single < _EXACT * float(np.sum((data.weights * data.signal) ** 2)):
        return 0.0
    longest = float(data.phases[1].centre_s[-1]) / _FAST_SHARE
    fast = -np.log([min(_FAST_S[1], longest), _FAST_S[0]])
    low, high = np.array([fast[0], off[0]]), np.array([fast[1], fast[1]])
    best, double = np.array([fast[0], off[0]]), single
    for _ in range(4):
        axes = [np.linspace(low[i], high[i], _RATES) for i in (0, 1)]
        pairs = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
        pairs = pairs[pairs[:, 0] > pairs[:, 1] + np.log(_SEPARATE)]
        squares = step.squares_of_two(pairs)
        best, double = pairs[int(np.argmin(squares))], float(squares.min())
        width = (high - low) / _RATES
        low, high = np.maximum(best - width, [fast[0], off[0]]), np.minimum(best + width, fast[1])
    return float(np.exp(-best[0])) if double < _FAST_GAIN * single else 0.0


class _Dissociation:
    """Amplitude and offset of each curve are linear: they are projected out."""

    def __init__(self, data: Matrix, crop_s: float) -> None:
        kept = np.concatenate(
            [np.zeros(len(data.phases[0].count), dtype=bool), data.phases[1].first_s >= crop_s]
        )
        self._bins: Bins = data.phases[1].later_than(crop_s)
        self._weights = data.weights[kept]
        self._drift = self._weights * data.drift[kept]
        self._target = self._weights * data.signal[:, kept]
        self._data = data
        flat = self._weights / np.linalg.norm(self._weights)
        self._flat = flat
        self._centred = self._target - (self._target @ flat)[:, None] * flat
        self._total = float(np.sum(self._centred**2))

    def _shapes(self, log_rates: FloatArray) -> FloatArray:
        """Weighted decays without their mean, shape (k, n)."""
        shape = self._bins.decay(np.exp(log_rates)) * self._weights
        return np.asarray(shape - (shape @ self._flat)[..., None] * self._flat)

    def squares(self, log_koff: FloatArray) -> FloatArray:
        shapes = self._shapes(log_koff)
        along = shapes @ self._centred.T
        return np.asarray(self._total - np.sum(along**2, axis=1) / np.sum(shapes**2, axis=1))

    def squares_of_two(self, log_rates: FloatArray) -> FloatArray:
        """For pairs of rates, shape (k, 2): each distinct rate is evaluated once."""
        rates, where = np.unique(log_rates, return_inverse=True)
        shapes = self._shapes(rates)
        gram, along = shapes @ shapes.T, shapes @ self._centred.T
        one, two = where.reshape(log_rates.shape).T
        a, b, c = gram[one, one], gram[two, two], gram[one, two]
        u, v = along[one], along[two]
        solved = (b[:, None] * u**2 + a[:, None] * v**2 - 2 * c[:, None] * u * v).sum(axis=1)
        return np.asarray(self._total - solved / np.maximum(a * b - c**2, 1e-12 * a * b))

    def residuals(self, log_koff: float) -> FloatArray:
        shape = self._shapes(np.array([log_koff]))[0]
        return np.asarray(self._centred - (self._centred @ shape)[:, None] * shape / (shape @ shape))

    def slope(self, log_koff: float) -> FloatArray:
        above, below = (self.residuals(log_koff + step) for step in (_STEP, -_STEP))
        return np.asarray((above - below) / (2 * _STEP))

    def noise(self, log_koff: float) -> Noise:
        left = self.residuals(log_koff)
        return _noise(left, self._drift, 1 + 2 * len(left), self._data)

    def linear(self, log_koff: float) -> tuple[FloatArray, FloatArray]:
        columns = [self._bins.decay(np.exp(np.array(log_koff))) * self._weights, self._weights]
        found, *_ = np.linalg.lstsq(np.stack(columns, axis=1), self._target.T, rcond=None)
        return np.asarray(found[0]), np.asarray(found[1])


class _Association:
    """Rmax of each curve is linear: it is projected out."""

    def __init__(self, data: Matrix) -> None:
        bins = len(data.phases[0].count)
        self._data = data
        self._weights = data.weights[:bins]
        self._drift = self._weights * data.drift[:bins]
        self._target = self._weights * data.signal[:, :bins]

    def _shapes(self, log_kon: FloatArray, log_koff: float) -> FloatArray:
        kon, koff = np.exp(np.asarray(log_kon))[..., None], np.exp(log_koff)
        concentration = self._data.concentration_M
        rising = 1.0 - self._data.phases[0].decay(kon * concentration + koff)
        return np.asarray(saturation(kon, koff, concentration)[..., None] * rising * self._weights)

    def _along(self, shapes: FloatArray) -> tuple[FloatArray, FloatArray]:
        return (
            np.einsum("...cn,cn->...c", shapes, self._target),
            np.einsum("...cn,...cn->...c", shapes, shapes),
        )

    def squares(self, log_kon: FloatArray, log_koff: float) -> FloatArray:
        along, length = self._along(self._shapes(log_kon, log_koff))
        return np.asarray(np.sum(self._target**2) - np.sum(along**2 / length, axis=-1))

    def rmax(self, log_kon: float, log_koff: float) -> FloatArray:
        along, length = self._along(self._shapes(np.array(log_kon), log_koff))
        return np.asarray(along / length)

    def residuals(self, log_kon: float, log_koff: float) -> FloatArray:
        shape = self._shapes(np.array(log_kon), log_koff)
        return np.asarray(self._target - self.rmax(log_kon, log_koff)[:, None] * shape)

    def slope(self, log_kon: float, log_koff: float) -> FloatArray:
        above, below = (self.residuals(log_kon + step, log_koff) for step in (_STEP, -_STEP))
        return np.asarray((above - below) / (2 * _STEP))

    def moved_by_koff(self, log_kon: float, log_koff: float) -> float:
        """How much the logarithm of k_on moves with that of k_off, at the minimum."""
        slope = self.slope(log_kon, log_koff)
        above, below = (self.residuals(log_kon, log_koff + step) for step in (_STEP, -_STEP))
        return -float(np.sum(slope * (above - below)) / (2 * _STEP) / np.sum(slope**2))

    def noise(self, log_kon: float, log_koff: float) -> Noise:
        left = self.residuals(log_kon, log_koff)
        return _noise(left, self._drift, 1 + len(left), self._data)


class _Errors:
    """Drift moves both steps, so their errors are not independent."""

    def __init__(
        self, association: _Association, dissociation: _Dissociation, kon: float, koff: float, moved: float
    ) -> None:
        self._noises = association.noise(kon, koff), dissociation.noise(koff)
        slopes = association.slope(kon, koff), dissociation.slope(koff)
        self._effects = [influence(slope[..., None], np.ones(1)) for slope in slopes]
        self._moved = moved

    def widening(self, of_kon: float, of_koff: float) -> float:
        """The error of a sum of both logarithms, over what it would be if the errors were independent."""
        shares = (of_kon, of_koff + of_kon * self._moved)
        parts = [
            (share**2 * noise.random(effect), share * (effect @ noise.drift))
            for share, noise, effect in zip(shares, self._noises, self._effects, strict=True)
        ]
        total = self._noises[0].total
        joint = total(parts[0][0] + parts[1][0], parts[0][1] + parts[1][1])
        return float(np.sqrt(joint / (total(*parts[0]) + total(*parts[1]))))


def _growth(noise: Noise, slope: FloatArray) -> float:
    return noise.growth(slope[..., None], np.ones(1))


def _noise(residuals: FloatArray, drift: FloatArray, parameters: int, data: Matrix) -> Noise:
    return noise_of(residuals, drift, parameters, data.unit, has_blank=data.has_blank)


def _combined(best: float, own: LogInterval, moves: list[float | None], widening: float) -> LogInterval:
    """An estimate from its own error and its `moves` with both ends of another one; open where one of them is."""
    ends: list[float | None] = []
    for side, end in ((-1.0, own.low), (1.0, own.high)):
        if end is None or None in moves:
            ends.append(None)
            continue
        furthest = max(0.0, *(side * move for move in moves if move is not None))
        ends.append(best + side * widening * float(np.hypot(end - own.best, furthest)))
    return LogInterval(best, ends[0], ends[1])


def _mirrored(own: LogInterval) -> LogInterval:
    """The interval of the negative."""
    return LogInterval(
        -own.best, None if own.high is None else -own.high, None if own.low is None else -own.low
    )
