"""The verdict on one replicate, with its reasons (docs/kinetics.md has the thresholds and how they were measured)."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from prefect_assay.results.kinetics.analysis import Estimate, KineticsFit, ServiceValues, Verdict
from prefect_assay.results.kinetics.curves import FloatArray
from prefect_assay.results.kinetics.noise import drift_deviation, less_drift, white_noise
from prefect_assay.results.kinetics.prepare import Matrix

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
MISFIT: Final = 0.008
"""Systematic residuals of the 1:1 fit from this share of the highest signal on are not noise."""
SYSTEMATIC_DRIFTS: Final = 0.6
"""Both must also be larger than this many standard deviations of a sensor's own drift."""
UNUSABLE: Final = 0.1
"""Curves that a fit misses by this share of the highest signal get a number only if the service reports binding."""
_END_S: Final = 10.0
_NAMES: Final = (("kon_per_M_s", "k_on"), ("koff_per_s", "k_off"), ("kd_M", "K_D"))

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


def misfit(residuals: FloatArray, data: Matrix) -> float:
    """Root mean square of the systematic residuals of a fit, in the unit of the signal.

    Args:
        residuals: weighted, shape (c, n).
        data: what was fitted.
    """
    return _systematic(less_drift(residuals, data.weights * data.drift), data)


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


def usable(
    fits: tuple[KineticsFit, ...], left: float, data: Matrix, service: ServiceValues
) -> tuple[KineticsFit, ...]:
    """The fits that give a number: K_D has an end, and waves and jumps that no one calls binding are left out.

    Args:
        fits: of both models.
        left: the `misfit` of `global_1to1`.
        data: what was fitted.
        service: what the laboratory reports.
    """
    reported = service.binding == "true" or service.kd_M is not None
    if left > UNUSABLE * float(np.max(data.signal)) and not reported:
        return ()
    return tuple(fit for fit in fits if (fit.kd_M.low, fit.kd_M.high) != (None, None))


def judge(fits: tuple[KineticsFit, ...], left: float, data: Matrix, service: ServiceValues) -> Judgement:
    """Verdict on a replicate that binds.

    Args:
        fits: those of both models that are `usable`.
        left: the `misfit` of `global_1to1`.
        data: what was fitted.
        service: what the laboratory reports.
    """
    highest = float(np.max(data.signal))
    differences, open_ends = _differences(fits, service), _open_ends(fits)
    agreement = _agreement(fits, service)
    drift = drift_deviation(data.unit, has_blank=data.has_blank)
    if left > max(MISFIT * highest, SYSTEMATIC_DRIFTS * drift):
        number = "" if fits else ", so there is no number"
        reason = f"systematic residuals of the 1:1 fit are {left / highest:.1%} of the highest signal{number}"
        return Verdict.NOT_1_TO_1, (reason, *agreement, *differences)
    if service.kd_M is None:
        return Verdict.REVIEW, ("the service reports no K_D", *open_ends)
    if not fits:
        return Verdict.REVIEW, ("the curves bound K_D neither from below nor from above: no number",)
    if not any(_closed(fit) for fit in fits):
        return Verdict.REVIEW, (*open_ends, *differences)
    verdict = Verdict.AGREES if agreement else Verdict.REVIEW
    return verdict, (*agreement, *differences, *open_ends)


def _agreement(fits: tuple[KineticsFit, ...], service: ServiceValues) -> list[str]:
    agreeing = [fit.model for fit in fits if _closed(fit) and not _differences((fit,), service)]
    if not agreeing or service.kd_M is None:
        return []
    return [
        f"{' and '.join(agreeing)}: within {AGREEMENT:.0%} of the service's values, or the intervals hold them"
    ]


def _closed(fit: KineticsFit) -> bool:
    return all(None not in (estimate.low, estimate.high) for _, estimate in _estimates(fit))


def _estimates(fit: KineticsFit) -> tuple[tuple[str, Estimate], ...]:
    return tuple((label, getattr(fit, name)) for name, label in _NAMES)


def _open_ends(fits: tuple[KineticsFit, ...]) -> list[str]:
    found = []
    for fit in fits:
        for label, estimate in _estimates(fit):
            if estimate.low is None or estimate.high is None:
                both = estimate.low is None and estimate.high is None
                limit = "" if both else (" from below" if estimate.low is None else " from above")
                found.append(f"{fit.model}: the curves do not bound {label}{limit}")
    return found


def _differences(fits: tuple[KineticsFit, ...], service: ServiceValues) -> list[str]:
    """One line per model whose values are neither within `AGREEMENT` of the service's nor hold them."""
    found = []
    for fit in fits:
        far = []
        for name, label in _NAMES:
            estimate, reported = getattr(fit, name), getattr(service, name)
            if reported is None or reported <= 0:
                continue
            holds = (estimate.low or 0.0) <= reported <= (estimate.high or np.inf)
            difference = estimate.value / reported - 1
            if abs(difference) > AGREEMENT and not holds:
                far.append(f"{label} {difference:+.0%}")
        if far:
            found.append(f"{fit.model} against the service: {', '.join(far)}")
    return found
