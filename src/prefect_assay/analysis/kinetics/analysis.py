"""The outcome of an analysis: fitted values with intervals, a verdict per replicate. Plain models, without NumPy.

Units: K_D in M, k_on in 1/(M s), k_off in 1/s, temperatures in degrees Celsius, signals in the unit of the package.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final, Literal

from prefect_assay.service.models.base import Model, StoredModel

ModelName = Literal["global_1to1", "two_step"]

CONCENTRATION_ERROR: Final = 0.2
"""Unless it is given: what the concentration of a small protein, measured once, is commonly off."""


class Verdict(StrEnum):
    """What the raw curves of one replicate say about its published values."""

    AGREES = "agrees"  # the fit describes the curves, and it agrees with the service's values
    REVIEW = "review"  # look at the curves: the reasons say why
    NOT_1_TO_1 = "not_1_to_1"  # another mechanism describes the curves better, and with another K_D
    NO_BINDING = "no_binding"  # no response above the noise: there is no number


class Estimate(StoredModel):
    """A fitted value with its 95 % interval. A side that the data leave open is None, and then the value is, too.

    What remains is a limit: the value is below `high` or above `low`. A limit is no value: it has no rank and no mean.
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
    """One model, fitted to all curves of one replicate.

    Intervals are the precision of the fit: 95 % by noise and baselines alone, as these curves show them, and less where sensors
    differ. `kd_uncertainty_M` has all that differs from sensor to sensor, and the error of the concentrations
    (`PackageAnalysis.concentration_error`): the interval to rely on.
    `rmax` has one value, or one per curve where the model lets them differ. `mae` is the mean absolute residual in the
    unit of the signal, `relative_mae` the same over the highest signal, `runs_p` the p value of the runs test.
    """

    model: ModelName
    kon_per_M_s: Estimate  # noqa: N815
    koff_per_s: Estimate
    kd_M: Estimate  # noqa: N815
    kd_uncertainty_M: Estimate  # noqa: N815
    rmax: tuple[float, ...]
    mae: float
    relative_mae: float
    runs_p: float


class ServiceValues(StoredModel):
    """What the laboratory reports for the same replicate."""

    kon_per_M_s: float | None = None  # noqa: N815
    koff_per_s: float | None = None
    kd_M: float | None = None  # noqa: N815
    mae: float | None = None
    relative_mae: float | None = None
    binding: str | None = None
    tm_C: float | None = None  # noqa: N815


class ReplicateKinetics(StoredModel):
    """The fits of one replicate beside the service's values; a replicate that does not bind has no fit.

    The first fit is the one that counts. A second one is there where 1:1 does not describe the curves: it is 1:1.
    """

    name: str
    replicate: int | None
    unit: str  # of the signal: nm or RU
    concentrations_nM: tuple[float, ...]  # noqa: N815
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    fits: tuple[KineticsFit, ...] = ()
    service: ServiceValues = ServiceValues()

    def fit(self, model: ModelName) -> KineticsFit | None:
        """The fit of one model, or None."""
        return next((fit for fit in self.fits if fit.model == model), None)


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
