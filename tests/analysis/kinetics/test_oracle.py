"""The global 1:1 fit against `pykingenie`, an independent implementation (MIT)."""

import numpy as np
import pytest
from pykingenie.utils.fitting_surface import fit_one_site_assoc_and_disso

from prefect_assay.analysis.kinetics.fit import fit_one_to_one
from prefect_assay.analysis.kinetics.prepare import matrix, subtract_blanks
from prefect_assay.analysis.kinetics.response import curve
from support.kinetics.simulate import CONCENTRATIONS_M, Schedule, measured

SCHEDULE = Schedule(step_s=0.2)


def oracle(curves):
    """K_D in M, k_off in 1/s and Rmax; concentrations in µM inside."""
    before = [curve.time_s <= 180.0 for curve in curves]
    parameters, *_ = fit_one_site_assoc_and_disso(
        [c.signal[b][::5] for c, b in zip(curves, before, strict=True)],
        [c.time_s[b][::5] for c, b in zip(curves, before, strict=True)],
        [c.concentration_M * 1e6 for c in curves],
        [c.signal[~b][::5] for c, b in zip(curves, before, strict=True)],
        [c.time_s[~b][::5] for c, b in zip(curves, before, strict=True)],
        [0.1, 0.005, 8.0],
        [1e-4, 1e-5, 0.1],
        [10.0, 1.0, 50.0],
        smax_idx=[0] * len(curves),
        shared_smax=True,
    )
    return parameters[0] * 1e-6, parameters[1], parameters[2]


@pytest.mark.parametrize(("kon", "koff"), [(1e5, 1e-2), (3e5, 2e-3)])
def test_curves_without_disturbances_give_the_oracles_values(kon, koff):
    clean = {c: 3.0 * curve(SCHEDULE.times, kon, koff, c, 180.0) for c in CONCENTRATIONS_M}
    measured_curves = measured(clean, np.random.default_rng(3), SCHEDULE, own_drift=0.0)
    curves = subtract_blanks(measured_curves)
    kd, koff, rmax = oracle(curves)
    fit = fit_one_to_one(matrix(curves, 180.0, blanks=1, unit="nm"))
    assert np.exp(fit.rates.kd.best) == pytest.approx(kd, rel=0.03)
    assert np.exp(fit.rates.koff.best) == pytest.approx(koff, rel=0.03)
    assert fit.rmax == pytest.approx([rmax] * 4, rel=0.03)
