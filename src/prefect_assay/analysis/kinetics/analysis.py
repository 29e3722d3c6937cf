"""The outcome of an analysis: fitted values with intervals, a verdict per replicate. Plain models, without NumPy.

Units: K_D in M, k_on in 1/(M s), k_off in 1/s, temperatures in degrees Celsius, signals in the unit of the package.
"""

from collections.abc import Callable
from enum import StrEnum
from math import inf
from typing import Final

from prefect_assay.service.models.base import Model, StoredModel

CONCENTRATION_ERROR: Final = 0.2
"""Unless it is given: what the concentration of a small protein, measured once, is commonly off."""


class Verdict(StrEnum):
    """What the raw curves of one replicate say about its published values."""

    AGREES = "agrees"  # the fit describes the curves, and it agrees with the service's values
    REVIEW = "review"  # look at the curves: the reasons say why
    NOT_1_TO_1 = (
        "not_1_to_1"  # the curves deviate so far from 1:1 that its constants are only the nearest ones
    )
    NO_BINDING = "no_binding"  # no response above the noise: there is no number


class Estimate(StoredModel):
    """A fitted value with its 95 % interval. A side that the data leave open is None, and then so is the value.

    What remains is a limit: the value is below `high` or above `low`. A limit is never averaged.
    """

    value: float | None
    low: float | None = None
    high: float | None = None

    def text(self, number: Callable[[float], str], parts: str = "{} ({} to {})") -> str:
        """`62 nM (50 nM to 71 nM)`, a limit as `< 71 nM`; `parts` joins value and ends."""
        if self.value is not None and self.low is not None and self.high is not None:
            return parts.format(number(self.value), number(self.low), number(self.high))
        if self.value is not None:
            return number(self.value)
        if self.high is not None:
            return f"< {number(self.high)}"
        return f"> {number(self.low)}" if self.low is not None else "not bounded"


class KineticsFit(StoredModel):
    """The global 1:1 fit of all curves of one replicate.

    Intervals are 95 % at the nominal concentrations: noise, baselines, what differs from curve to curve, and the deviation
    from 1:1. `kd_uncertainty_M` also has the common error of the concentrations (`PackageAnalysis.concentration_error`): the
    interval to quote in a paper. `misfit` is the deviation from 1:1 as a share of the signal. `rmax` has one value per curve.
    `kd_one_rmax_M` and `kd_free_rmax_M` are what K_D would be if all curves had one R_max, or each its own; None where the
    curves are 1:1. `mae` is the mean absolute residual in the unit of the signal, `relative_mae` the same over the highest.
    """

    kon_per_M_s: Estimate  # noqa: N815
    koff_per_s: Estimate
    kd_M: Estimate  # noqa: N815
    kd_uncertainty_M: Estimate  # noqa: N815
    misfit: float
    rmax: tuple[float, ...]
    kd_one_rmax_M: float | None = None  # noqa: N815
    kd_free_rmax_M: float | None = None  # noqa: N815
    mae: float
    relative_mae: float


class ServiceValues(StoredModel):
    """What the laboratory reports for the same replicate; `limits` has those that are no exact value, by field."""

    kon_per_M_s: float | None = None  # noqa: N815
    koff_per_s: float | None = None
    kd_M: float | None = None  # noqa: N815
    mae: float | None = None
    relative_mae: float | None = None
    binding: str | None = None
    tm_C: float | None = None  # noqa: N815
    limits: dict[str, Estimate] = {}  # noqa: RUF012  pydantic copies it

    def get_reported(self, name: str) -> Estimate | None:
        """The value of a field, or its limit; None where neither is reported."""
        value = getattr(self, name)
        return self.limits.get(name) if value is None else Estimate(value=value)

    def find_range(self, name: str) -> tuple[float, float] | None:
        """The least and the most that a reported value allows, equal for an exact one; None where none is reported."""
        reported = self.get_reported(name)
        if reported is None:
            return None
        if reported.value is not None:
            return reported.value, reported.value
        return -inf if reported.low is None else reported.low, inf if reported.high is None else reported.high


class ReplicateKinetics(StoredModel):
    """The fit of one replicate next to the service's values, and K_D of the plateaus, which needs no rate.

    `fit` is None without binding, and where the curves give no number. `steady_state_kd_M` is None where too few curves
    approach a plateau. `brackets_kd`: some concentrations are below K_D, and some above; None without a K_D.
    """

    name: str
    replicate: int | None
    unit: str  # of the signal: nm or RU
    concentrations_nM: tuple[float, ...]  # noqa: N815
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    fit: KineticsFit | None = None
    steady_state_kd_M: Estimate | None = None  # noqa: N815
    brackets_kd: bool | None = None
    service: ServiceValues = ServiceValues()


class ReplicateMelting(StoredModel):
    """The fit of one melting curve; `derivative_tm_C` is the maximum of the first derivative.

    Where one transition does not describe the curve, `transitions_C` has all, and `tm_C` is that of the largest step.
    """

    name: str
    replicate: int | None
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    tm_C: Estimate | None = None  # noqa: N815
    transitions_C: tuple[Estimate, ...] = ()  # noqa: N815
    derivative_tm_C: float | None = None  # noqa: N815
    service: ServiceValues = ServiceValues()


class PackageAnalysis(Model):
    """All replicates of one data package; `notes` names each part that could not be read or fitted.

    `concentration_error` is the standard deviation, as a share, of what all concentrations of a design are off together.
    """

    kinetics: tuple[ReplicateKinetics, ...] = ()
    melting: tuple[ReplicateMelting, ...] = ()
    concentration_error: float = CONCENTRATION_ERROR
    notes: tuple[str, ...] = ()
