"""The verdict on one replicate, with its reasons (docs/kinetics.md has the thresholds and how they were measured)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from prefect_assay.analysis.kinetics.analysis import ServiceValues, Verdict
from prefect_assay.analysis.kinetics.fit import CONCENTRATION_SHARE, METHODS, GlobalFit
from prefect_assay.analysis.kinetics.intervals import LogInterval
from prefect_assay.analysis.kinetics.prepare import Matrix
from prefect_assay.analysis.kinetics.steady_state import SteadyState

AGREEMENT: Final = 0.25
"""How far a fitted value may lie from the service's, as a share of it."""
NO_RESPONSE: Final = {"nm": 0.05, "RU": 1.0}
"""Below this no curve has a response, in the unit of the signal."""
CLEAR_NOISES: Final = 5.0
"""A response is clear from so many standard errors on."""
CLEAR_CURVES: Final = 5
"""So many clear responses are for review, whatever their shape."""
EVIDENCE: Final = 40.0
"""By so many variances binding has to describe the curves better than steps and straight lines."""
SEEN_MISFIT: Final = 0.01
"""From this deviation from 1:1 on, a share of the signal, a person should look."""
WORST_MISFIT: Final = 0.03
"""From this one on, the constants are those of the nearest 1:1 curves only."""
UNUSABLE_MISFIT: Final = 0.2
"""Beyond it there is no number."""
SECOND_PROCESS: Final = 2.5
"""From so many standard deviations on, a second process describes the curves better; 1:1 curves reach 2.2."""
RMAX_FOLD: Final = 2.0
CONCENTRATION_ERRORS: Final = 3.0
BULK_ERRORS: Final = 4.0
BULK_SHARE: Final = 0.3
STEADY_FOLD: Final = 1.25
_END_S: Final = 10.0
_NAMES: Final = (("kon", "k_on"), ("koff", "k_off"), ("kd", "K_D"))
_SERVICE: Final = {"kon": "kon_per_M_s", "koff": "koff_per_s", "kd": "kd_M"}

Judgement = tuple[Verdict, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Response:
    """The responses at the end of the association (c,), and the standard error of one; both in the unit of the signal."""

    ends: np.ndarray
    error: float
    unit: str

    @property
    def height(self) -> float:
        """The highest response."""
        return float(self.ends.max())

    @property
    def depth(self) -> float:
        """How far the lowest curve lies below the blank."""
        return -float(self.ends.min())

    @property
    def least(self) -> float:
        """What a response reaches."""
        return max(NO_RESPONSE[self.unit], CLEAR_NOISES * self.error)

    @property
    def is_absent(self) -> bool:
        """Whether no curve rises."""
        return self.height < self.least

    @property
    def has_clear_doses(self) -> bool:
        """Whether so many concentrations respond that drift of single sensors cannot be the cause."""
        return int(np.count_nonzero(np.abs(self.ends) > CLEAR_NOISES * self.error)) >= CLEAR_CURVES


def measure_response(data: Matrix) -> Response:
    """The responses of a replicate at the end of the association, over the last ten seconds or more."""
    first = data.phases[0]
    last = np.flatnonzero(first.first_s + first.count * first.step_s > data.association_s - _END_S)
    ends = np.average(data.signal[:, last], axis=1, weights=first.count[last])
    samples = float(first.count[last].sum())
    # Of what differs between sensors, half is in the windows around the end.
    wander = METHODS[data.unit].wander
    return Response(
        ends,
        float(np.hypot(np.sqrt((data.noise.white + data.noise.correlated) / min(samples, 10.0)), wander)),
        data.unit,
    )


def judge_without_rates(
    response: Response, fit: GlobalFit | None, steady: SteadyState | None, service: ServiceValues
) -> Judgement | None:
    """The verdict on a replicate that gets no kinetic number, because its curves show no binding; else None."""
    reported = service.find_range("kd_M")
    # A lower limit is also how a laboratory writes that it saw no binding.
    is_reported = service.binding == "true" or (reported is not None and reported[1] < np.inf)
    contradiction = ("the service reports binding",) if is_reported else ()
    if fit is None and response.depth >= response.least:
        reason = f"a response of -{response.depth:.2g} {response.unit}: the curves fall below the blank, which binding does not explain"
        is_doubtful = is_reported or response.has_clear_doses
        return (Verdict.REVIEW if is_doubtful else Verdict.NO_BINDING), (reason, *contradiction)
    if fit is None:
        reason = f"no response: below {NO_RESPONSE[response.unit]:g} {response.unit}, or within the noise"
        return (Verdict.REVIEW if is_reported else Verdict.NO_BINDING), (reason, *contradiction)
    if fit.evidence >= EVIDENCE:
        return None
    shape = f"a response of {response.height:.2g} {response.unit} in steps and straight lines"
    if steady is not None and steady.has_saturation and steady.kd.closed:
        return Verdict.REVIEW, (
            f"{shape}: the rates are too fast for these curves; K_D is that of the plateaus",
            *contradiction,
        )
    reason = f"{shape}: bulk shift, unspecific binding, or rates that the curves do not resolve"
    if response.has_clear_doses or is_reported:
        return Verdict.REVIEW, (reason, *contradiction)
    return Verdict.NO_BINDING, (reason,)


def judge_one_concentration(service: ServiceValues) -> Judgement:
    """Curves that bind, at one concentration: a screening call is not an affinity."""
    if service.binding == "true" and service.find_range("kd_M") is None:
        return Verdict.AGREES, (
            "the curves bind, as the service reports; one concentration gives no affinity",
        )
    return Verdict.REVIEW, ("the curves bind; one concentration gives no affinity",)


@dataclass(frozen=True, slots=True)
class Judged:
    """What a verdict on a replicate that binds rests on."""

    fit: GlobalFit
    steady: SteadyState | None
    data: Matrix
    service: ServiceValues

    @property
    def is_usable(self) -> bool:
        """Whether the fit gives a number: K_D has an end, and the curves have something of 1:1."""
        kd = self.fit.rates.kd
        return self.fit.misfit < UNUSABLE_MISFIT and (kd.low, kd.high) != (None, None)

    @property
    def brackets_kd(self) -> bool:
        """Whether concentrations lie below K_D, and others above."""
        kd, doses = float(np.exp(self.fit.rates.kd.best)), self.data.concentration_M
        return bool(doses.min() < kd < doses.max())

    def verdict(self) -> Judgement:
        """The verdict with its reasons."""
        differences, misfit = self._differences(), self.fit.misfit
        doubts = (*self._limits(), *self._implausible(), *differences)
        if misfit > WORST_MISFIT:
            number = "" if self.is_usable else "; there is no number"
            return Verdict.NOT_1_TO_1, (
                f"the curves deviate from 1:1 by {misfit:.1%} of the signal{self._choice()}{number}",
                *doubts,
            )
        if not self.is_usable:
            return Verdict.REVIEW, ("the curves bound K_D neither from below nor from above: no number",)
        if misfit > SEEN_MISFIT:
            doubts = (
                f"misfit: the curves deviate from 1:1 by {misfit:.1%} of the signal{self._choice()}",
                *doubts,
            )
        if self.service.binding == "false":
            doubts = ("the service reports no binding, and the curves bind", *doubts)
        if self.service.find_range("kd_M") is None:
            doubts = ("the service reports no K_D", *doubts)
        if doubts:
            return Verdict.REVIEW, doubts
        return Verdict.AGREES, (
            f"global 1:1: within {AGREEMENT:.0%} of the service's values, or the intervals hold them",
            *self._describe_limits(),
        )

    def _choice(self) -> str:
        """What K_D depends on, where it does."""
        one, free = self.fit.kd_one_rmax, self.fit.kd_free_rmax
        if one is None or free is None or abs(np.log(free / one)) < np.log1p(AGREEMENT):
            return ""
        return f"; K_D is {one * 1e9:.3g} nM with one R_max, and {free * 1e9:.3g} nM with one per curve"

    def _limits(self) -> Iterator[str]:
        for name, label in _NAMES:
            interval = getattr(self.fit.rates, name)
            if interval.low is None and interval.high is None:
                yield f"the curves do not bound {label}"
            elif not interval.closed:
                side = "below" if interval.low is None else "above"
                yield f"the curves do not bound {label} from {side}"

    def _implausible(self) -> Iterator[str]:
        """What the fit had to assume and a person would not, in words."""
        fit, doses = self.fit, self.data.concentration_M
        unit, highest = self.data.unit, float(doses.max())
        low, high = float(fit.rmax.min()), float(fit.rmax.max())
        if fit.second_process > SECOND_PROCESS:
            yield "a second process: slower or faster sites, or an analyte with two arms; K_D is that of the nearest 1:1 curves"
        if high > RMAX_FOLD * low:
            yield f"R_max runs from {low:.3g} to {high:.3g} {unit} over the curves"
        far = np.abs(fit.concentration) > CONCENTRATION_ERRORS * CONCENTRATION_SHARE
        if far.any():
            names = ", ".join(f"{dose * 1e9:g} nM" for dose in doses[far])
            yield f"the concentration of the curve at {names} seems off by more than {np.expm1(CONCENTRATION_ERRORS * CONCENTRATION_SHARE):.0%}"
        ends = np.abs(self.data.signal).max(axis=1)
        expected = METHODS[unit].bulk * np.sqrt(doses / highest)
        bulk = np.abs(fit.bulk)
        if ((bulk > BULK_ERRORS * expected) | ((bulk > BULK_SHARE * ends) & (bulk > expected))).any():
            yield f"bulk shift of up to {bulk.max():.2g} {unit} in the curves"
        kd = fit.rates.kd
        if np.exp(kd.best) > highest and kd.closed:
            yield f"K_D is above the highest concentration, {highest * 1e9:g} nM: it is extrapolated"
        if self.steady is not None and _are_apart(kd, self.steady.kd):
            yield f"K_D of the plateaus is {np.exp(self.steady.kd.best) * 1e9:.3g} nM, and that of the rates {np.exp(kd.best) * 1e9:.3g} nM"

    def _describe_limits(self) -> tuple[str, ...]:
        """In one line, the constants that the service reports as limits."""
        labels = [label for name, label in _NAMES if _SERVICE[name] in self.service.limits]
        return (f"the service reports a limit of {', '.join(labels)}",) if labels else ()

    def _differences(self) -> tuple[str, ...]:
        """In one line, the values that are neither within `AGREEMENT` of the service's nor hold them."""
        far = []
        for name, label in _NAMES:
            reported = self.service.find_range(_SERVICE[name])
            if reported is None or reported[1] <= 0:
                continue
            interval = getattr(self.fit.rates, name)
            least, most = (float(np.log(max(end, 1e-300))) for end in reported)
            low = -np.inf if interval.low is None else interval.low
            high = np.inf if interval.high is None else interval.high
            value = min(max(interval.best, least), most)
            difference = float(np.exp(interval.best - value)) - 1
            is_near = interval.closed and abs(difference) <= AGREEMENT
            if is_near or (least <= high and low <= most):
                continue
            if least != most:
                far.append(f"{label} beyond the reported limit")
            else:
                far.append(f"{label} {difference:+.0%}" if interval.closed else f"{label} beyond its limit")
        return (f"against the service: {', '.join(far)}",) if far else ()


def _are_apart(one: LogInterval, other: LogInterval) -> bool:
    """Whether two intervals have a gap, with a margin for what both assume."""
    margin = float(np.log(STEADY_FOLD))
    return (one.high is not None and other.low is not None and one.high + margin < other.low) or (
        other.high is not None and one.low is not None and other.high + margin < one.low
    )
