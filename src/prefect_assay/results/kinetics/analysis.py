"""The outcome of an analysis: fitted values with intervals, a verdict per replicate. Plain models, without NumPy.

Units: K_D in M, k_on in 1/(M s), k_off in 1/s, temperatures in degrees Celsius, signals in the unit of the package.
"""

from enum import StrEnum
from typing import Literal

from prefect_assay.models.base import Model, StoredModel

ModelName = Literal["global_1to1", "two_step"]


class Verdict(StrEnum):
    """What the raw curves of one replicate say about its published values."""

    AGREES = "agrees"  # the fit describes the curves, and it agrees with the service's values
    REVIEW = "review"  # look at the curves: the reasons say why
    NOT_1_TO_1 = "not_1_to_1"  # the residuals are not noise: one affinity does not describe the curves
    NO_BINDING = "no_binding"  # no response above the noise: there is no number


class Estimate(StoredModel):
    """A fitted value with its 95 % interval; a side that the data leave open is None."""

    value: float
    low: float | None = None
    high: float | None = None


class KineticsFit(StoredModel):
    """One model, fitted to all curves of one replicate.

    `rmax` has one value, or one per curve where the model lets them differ. `mae` is the mean absolute residual in the
    unit of the signal, `relative_mae` the same over the highest signal, `runs_p` the p value of the runs test.
    """

    model: ModelName
    kon_per_M_s: Estimate  # noqa: N815
    koff_per_s: Estimate
    kd_M: Estimate  # noqa: N815
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
    """All fits of one replicate beside the service's values; a replicate that does not bind has no fit."""

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
    """The two-state fit of one melting curve; `derivative_tm_C` is the maximum of the first derivative."""

    name: str
    replicate: int | None
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    tm_C: Estimate | None = None  # noqa: N815
    derivative_tm_C: float | None = None  # noqa: N815
    service: ServiceValues = ServiceValues()


class PackageAnalysis(Model):
    """All replicates of one data package; `notes` names each part that could not be read or fitted."""

    kinetics: tuple[ReplicateKinetics, ...] = ()
    melting: tuple[ReplicateMelting, ...] = ()
    notes: tuple[str, ...] = ()
