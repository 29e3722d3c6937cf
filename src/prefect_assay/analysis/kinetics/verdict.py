"""The verdict on one replicate, with its reasons (docs/kinetics.md has the thresholds and how they were measured)."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from prefect_assay.analysis.kinetics.alternatives import Alternative
from prefect_assay.analysis.kinetics.analysis import KineticsFit, ServiceValues, Verdict
from prefect_assay.analysis.kinetics.curves import FloatArray
from prefect_assay.analysis.kinetics.global_fit import WORST_MISFIT, GlobalFit, Rates
from prefect_assay.analysis.kinetics.noise import drift_deviation, white_noise
from prefect_assay.analysis.kinetics.prepare import Matrix

AGREEMENT: Final = 0.25
"""How far a fitted value may lie from the service's, as a share of it."""
NO_RESPONSE: Final = {"nm": 0.1, "RU": 2.0}
"""Below this no curve has a response, in the unit of the signal."""
RESPONSE_NOISES: Final = 5.0
"""Below so many standard errors it is no response, either."""
REPORTED_RESPONSE: Final = 3.0
"""So many times higher, it is fitted whatever its shape, if the service reports binding: slow binding is straight."""
CLEAR_RESPONSE: Final = {"nm": 1.0, "RU": 20.0}
"""Above this there is binding, whatever the shape of the curve."""
CURVATURE: Final = 0.022
"""In between, a response that steps and straight lines describe to this share of it is no binding."""
CHANGE: Final = 0.25
"""An alternative that fits better counts if it moves K_D by more than this share."""
SYSTEMATIC_DRIFTS: Final = 0.6
"""It must also be larger than this many standard deviations of a sensor's own drift."""
UNUSABLE: Final = 0.06
"""Curves that a fit misses by this share of the highest signal get a number only if the service reports binding."""
_END_S: Final = 10.0
_NAMES: Final = (("kon", "k_on"), ("koff", "k_off"), ("kd", "K_D"))
_SERVICE: Final = {"kon": "kon_per_M_s", "koff": "koff_per_s", "kd": "kd_M"}

Judgement = tuple[Verdict, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Response:
    """The highest response at the end of the association, and how far all curves are from steps and straight lines.

    `second` is the next highest response (the same at a single concentration), `curvature` that root mean square
    distance, `noise` the standard error of `height`, `drift` the deviation of a sensor's drift; all in the unit of the
    signal.
    """

    height: float
    second: float
    curvature: float
    noise: float
    drift: float
    unit: str

    @property
    def binds(self) -> bool:
        """Whether the curves show binding."""
        if self.height < RESPONSE_NOISES * self.noise:
            return False
        if self.height >= CLEAR_RESPONSE[self.unit]:
            return True
        return self.height >= NO_RESPONSE[self.unit] and self._is_curved

    @property
    def contradicts(self) -> bool:
        """Whether the curves speak against a report of no binding: a jump of one curve, or drift, does not."""
        return self.second >= CLEAR_RESPONSE[self.unit] and self._is_curved

    @property
    def _is_curved(self) -> bool:
        return self.curvature > max(CURVATURE * self.height, SYSTEMATIC_DRIFTS * self.drift)

    @property
    def is_reportable(self) -> bool:
        """Whether it is high enough to be fitted on the service's word."""
        lowest = REPORTED_RESPONSE * NO_RESPONSE[self.unit]
        return self.height >= max(lowest, RESPONSE_NOISES * self.noise)

    @property
    def reason(self) -> str:
        """Why the curves show no binding."""
        if self.height < RESPONSE_NOISES * self.noise:
            return "no response above the noise"
        if self.height < NO_RESPONSE[self.unit]:
            return f"the response stays below {NO_RESPONSE[self.unit]:g} {self.unit}"
        return (
            f"a response of {self.height:.2g} {self.unit} with the shape of steps and drift: "
            "bulk shift, unspecific binding, or kinetics that the curves do not resolve"
        )


def response_of(data: Matrix) -> Response:
    """Measure the response of a replicate."""
    first = len(data.phases[0].count)
    last = np.flatnonzero(data.phases[0].centre_s > data.association_s - _END_S)
    ends = np.average(data.signal[:, last], axis=1, weights=data.phases[0].count[last])
    height, second = float(ends.max()), float(np.sort(ends)[-2:][0])
    parts = []
    for phase, kept in zip(data.phases, (slice(0, first), slice(first, None)), strict=True):
        weights = data.weights[kept]
        basis, _ = np.linalg.qr(np.stack([weights, weights * phase.centre_s], axis=1))
        signal = data.signal[:, kept] * weights
        parts.append(signal - (signal @ basis) @ basis.T)
    left = np.concatenate(parts, axis=1)
    return Response(
        height,
        second,
        _systematic(left, data),
        white_noise(left) / float(np.sqrt(data.phases[0].count[last].sum())),
        drift_deviation(data.unit, has_blank=data.has_blank),
        data.unit,
    )


def _systematic(residuals: FloatArray, data: Matrix) -> float:
    noise = white_noise(residuals) ** 2 * residuals.size
    samples = float(np.sum(data.weights**2)) * len(residuals)
    return float(np.sqrt(max(0.0, float(np.sum(residuals**2)) - noise) / samples))


def judge_response(response: Response, service: ServiceValues) -> Judgement | None:
    """The verdict on a replicate that gets no number, because curves or service show no binding; else None."""
    if not response.binds:
        if service.binding == "true" or service.kd_M is not None:
            if response.is_reportable:
                return None
            return Verdict.REVIEW, (response.reason, "the service reports binding")
        return Verdict.NO_BINDING, (response.reason,)
    if service.binding != "false":
        return None
    called = f"the service reports no binding; the response is {response.height:.2g} {response.unit}"
    return (Verdict.REVIEW if response.contradicts else Verdict.NO_BINDING), (called,)


def judge_one_concentration(service: ServiceValues) -> Judgement:
    """Curves that bind, at one concentration: a screening call is not an affinity."""
    if service.binding == "true" and service.kd_M is None:
        return Verdict.AGREES, (
            "the curves bind, as the service reports; one concentration gives no affinity",
        )
    return Verdict.REVIEW, ("the curves bind; one concentration gives no affinity",)


@dataclass(frozen=True, slots=True)
class Judged:
    """What a verdict on a replicate that binds rests on.

    `two` has the rates of `two_step`, where an alternative in `better` describes the curves better than 1:1.
    """

    one: GlobalFit
    two: Rates | None
    better: tuple[Alternative, ...]
    data: Matrix
    service: ServiceValues

    @property
    def _rates(self) -> Rates:
        return self.two or self.one.rates

    def usable(self, fits: tuple[KineticsFit, ...]) -> tuple[KineticsFit, ...]:
        """The fits that give a number: K_D has an end, and waves and jumps that no one calls binding are left out."""
        reported = self.service.binding == "true" or self.service.kd_M is not None
        if self._distance > UNUSABLE and not reported:
            return ()
        return tuple(fit for fit in fits if (fit.kd_M.low, fit.kd_M.high) != (None, None))

    @property
    def _distance(self) -> float:
        return self.one.solution.distance / float(np.max(self.data.signal))

    def verdict(self, fits: tuple[KineticsFit, ...]) -> Judgement:
        """The verdict with its reasons; `fits` are those that are `usable`."""
        differences = self._differences()
        if changes := self._changes():
            number = "" if fits else "; there is no number"
            return Verdict.NOT_1_TO_1, (f"{changes}{number}", *differences)
        if self.one.misfit > WORST_MISFIT and not self.better:
            return Verdict.REVIEW, ("neither 1:1 nor another mechanism describes the curves", *differences)
        if not fits:
            return Verdict.REVIEW, ("the curves bound K_D neither from below nor from above: no number",)
        limits = self._limits()
        if self.service.kd_M is None:
            return Verdict.REVIEW, ("the service reports no K_D", *limits)
        if limits or differences:
            return Verdict.REVIEW, (*limits, *differences)
        word = "" if self.two is None else "; 1:1 does not describe the curves, which hardly changes K_D"
        agreed = (
            f"{fits[0].model}: within {AGREEMENT:.0%} of the service's values, or the intervals hold them"
        )
        return Verdict.AGREES, (f"{agreed}{word}",)

    def _changes(self) -> str | None:
        """The alternative that changes K_D most, in words; None where none changes it by more than `CHANGE`."""
        if not self.better:
            return None
        mine = self.one.rates.kd.best
        found: list[tuple[str, float]] = [(other.mechanism, other.log_kd - mine) for other in self.better]
        if self.two is not None:
            found.append(("incomplete dissociation", self.two.kd.best - mine))
        mechanism, change = max(found, key=lambda item: abs(item[1]))
        if abs(change) <= np.log1p(CHANGE):
            return None
        gain = max(other.gain for other in self.better)
        return (
            f"{mechanism}: describes the curves better than 1:1 (sum of squared residuals less by {gain:.0f} variances of the noise),"
            f" and its K_D is {np.exp(change):.2g} times that of 1:1"
        )

    def _limits(self) -> list[str]:
        found = []
        for name, label in _NAMES:
            interval = getattr(self._rates, name)
            if interval.low is None and interval.high is None:
                found.append(f"the curves do not bound {label}")
            elif not interval.closed:
                side = "below" if interval.low is None else "above"
                found.append(f"the curves do not bound {label} from {side}")
        return found

    def _differences(self) -> list[str]:
        """In one line, the values that are neither within `AGREEMENT` of the service's nor hold them."""
        far = []
        for name, label in _NAMES:
            reported = getattr(self.service, _SERVICE[name])
            if reported is None or reported <= 0:
                continue
            interval, value = getattr(self._rates, name), float(np.log(reported))
            low = -np.inf if interval.low is None else interval.low
            high = np.inf if interval.high is None else interval.high
            difference = float(np.exp(interval.best - value)) - 1
            near = interval.closed and abs(difference) <= AGREEMENT
            if name == "kd" and self.two is not None and near:  # with more than one model, all have to agree
                of_one = float(np.exp(self.one.rates.kd.best - value)) - 1
                if abs(of_one) > AGREEMENT:
                    far.append(f"{label} {of_one:+.0%} by 1:1")
            elif not near and not low <= value <= high:
                far.append(f"{label} {difference:+.0%}" if interval.closed else f"{label} beyond its limit")
        return [f"against the service: {', '.join(far)}"] if far else []
